#include "runtime/tokenizer/split_patterns.hpp"

#include <array>

namespace lethe::split_patterns {

const std::string_view gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

using texts = std::string_view;
using span = std::span<const std::string_view>;

#define CONTRACTION R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define LEAD R"([^\r\n\p{L}\p{N}]?)"
#define REST R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define REST_SLASH R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"

constexpr texts gpt2_patterns[] = {GPT2};
constexpr texts unnamed_patterns[] = {R"([\p{P}\$\+<=>\^~\|]+)", GPT2, R"(\p{N}+)",
                                      "[0-9][0-9][0-9]"};
constexpr texts llama3_patterns[] = {CONTRACTION "|" LEAD R"(\p{L}+|\p{N}{1,3}|)" REST};
constexpr texts qwen2_patterns[] = {CONTRACTION "|" LEAD R"(\p{L}+|\p{N}|)" REST};
constexpr texts qwen35_patterns[] = {
    CONTRACTION "|" LEAD R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
                R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr texts tekken_patterns[] = {LEAD UPPER "*" LOWER "+|" LEAD UPPER "+" LOWER
                                                R"(*|\p{N}|)" REST_SLASH};
constexpr texts gpt4o_patterns[] = {LEAD UPPER "*" LOWER "+" CONTRACTION "?|" LEAD UPPER "+" LOWER
                                               "*" CONTRACTION R"(?|\p{N}{1,3}|)" REST_SLASH};
constexpr texts digit_gpt2_patterns[] = {R"(\p{N})", GPT2};
constexpr texts falcon_patterns[] = {R"([\p{P}\$\+<=>\^~\|`]+)", GPT2, "[0-9][0-9][0-9]"};
constexpr texts bloom_patterns[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)"};
constexpr texts viking_patterns[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)", R"(\p{N})"};
constexpr texts deepseek3_patterns[] = {
    R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr texts deepseek_coder_patterns[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                             "[一-龥ࠀ-一가-퟿]+", R"(\p{N})"};
// The second is every cased letter of Unicode 13, written out by the model's authors.
constexpr texts deepseek_llm_patterns[] = {
    R"([\r\n])",
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3})"
    R"(\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D})"
    R"(\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    R"(\s+$)",
    "[一-龥ࠀ-一가-퟿]+",
    R"(\p{N}+)"};
constexpr texts bailing_patterns[] = {
    R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr texts seed_coder_patterns[] = {
    CONTRACTION
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr texts superbpe_patterns[] = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};

#undef CONTRACTION
#undef UPPER
#undef LOWER
#undef LEAD
#undef REST
#undef REST_SLASH
#undef GPT2

constexpr std::array families = {
    family{"", unnamed_patterns},
    family{"default", unnamed_patterns},
    family{"gpt-2", gpt2_patterns},
    family{"gpt2", gpt2_patterns},
    family{"phi-2", gpt2_patterns},
    family{"jina-es", gpt2_patterns},
    family{"jina-de", gpt2_patterns},
    family{"jina-v1-en", gpt2_patterns},
    family{"jina-v2-es", gpt2_patterns},
    family{"jina-v2-de", gpt2_patterns},
    family{"jina-v2-code", gpt2_patterns},
    family{"roberta-bpe", gpt2_patterns},
    family{"gigachat", gpt2_patterns},
    family{"exaone4", gpt2_patterns},
    family{"mpt", gpt2_patterns},
    family{"olmo", gpt2_patterns},
    family{"jais", gpt2_patterns},
    family{"trillion", gpt2_patterns},
    family{"granite-docling", gpt2_patterns},
    family{"starcoder", digit_gpt2_patterns},
    family{"refact", digit_gpt2_patterns},
    family{"command-r", digit_gpt2_patterns},
    family{"smollm", digit_gpt2_patterns},
    family{"codeshell", digit_gpt2_patterns},
    family{"exaone", digit_gpt2_patterns},
    family{"minerva-7b", digit_gpt2_patterns},
    family{"llama3", llama3_patterns, true, true},
    family{"llama-v3", llama3_patterns, true, true},
    family{"llama-bpe", llama3_patterns, true, true},
    family{"falcon3", llama3_patterns, true, true},
    family{"falcon-h1", llama3_patterns, true, true},
    family{"pixtral", llama3_patterns, true, true},
    family{"midm-2.0", llama3_patterns, true, true},
    family{"lfm2", llama3_patterns, true, true},
    family{"dbrx", llama3_patterns},
    family{"smaug-bpe", llama3_patterns},
    family{"chatglm-bpe", llama3_patterns},
    family{"glm4", llama3_patterns},
    family{"qwen2", qwen2_patterns},
    family{"deepseek-r1-qwen", qwen2_patterns},
    family{"kormo", qwen2_patterns},
    family{"megrez", qwen2_patterns},
    family{"stablelm2", qwen2_patterns},
    family{"hunyuan", qwen2_patterns},
    family{"grok-2", qwen2_patterns},
    family{"solar-open", qwen2_patterns},
    family{"qwen35", qwen35_patterns},
    family{"tekken", tekken_patterns, true, true},
    family{"gpt-4o", gpt4o_patterns},
    family{"llama4", gpt4o_patterns},
    family{"minimax-m2", gpt4o_patterns},
    family{"falcon", falcon_patterns},
    family{"bloom", bloom_patterns},
    family{"poro-chat", bloom_patterns},
    family{"gpt3-finnish", bloom_patterns},
    family{"viking", viking_patterns},
    family{"deepseek-v3", deepseek3_patterns},
    family{"hunyuan-dense", deepseek3_patterns},
    family{"deepseek-coder", deepseek_coder_patterns},
    family{"deepseek-llm", deepseek_llm_patterns},
    family{"bailingmoe", bailing_patterns},
    family{"bailingmoe2", bailing_patterns},
    family{"llada-moe", bailing_patterns},
    family{"seed-coder", seed_coder_patterns},
    family{"superbpe", superbpe_patterns},
};

}  // namespace

std::optional<family> find(std::string_view pre) {
  for (const family& f : families)
    if (f.name == pre) return f;
  return {};
}

std::string names() {
  std::string all;
  for (const family& f : families) {
    if (f.name.empty()) continue;
    if (!all.empty()) all += ", ";
    all += f.name;
  }
  return all;
}

}  // namespace lethe::split_patterns
