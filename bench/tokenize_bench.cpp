// How fast texts become token ids, per published tokenizer and kind of text, with one thread and
// with two that each have a text of their own. First the ids of the published texts are compared
// with the published ones, and those of each text here must decode to it.

#include <fmt/format.h>
#include <simdjson.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "runtime/arena/arena.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace lethe {
namespace {

using std::filesystem::path;
using steady = std::chrono::steady_clock;
using ids = std::pmr::vector<uint32_t>;

struct flags {
  path tokenizers;
  std::string only, text;
  double megabytes = 1, seconds = 0.5;
};

std::string file_text(const path& p) {
  auto text = read_text(p, limits::json_file_bytes_max);
  if (!text) throw std::runtime_error(text.why().text);
  return *text;
}

/// Draws words of a language with few frequent ones and many rare ones.
class words {
 public:
  explicit words(std::string_view list) {
    for (size_t at = 0; at < list.size();) {
      size_t end = std::min(list.find(' ', at), list.size());
      all_.push_back(list.substr(at, end - at));
      at = end + 1;
    }
  }
  std::string_view draw(std::mt19937& random) const {
    double u = double(random() % 1'000'000) / 1e6;
    return all_[size_t(u * u * double(all_.size()))];
  }

 private:
  std::vector<std::string_view> all_;
};

std::string prose(size_t bytes, std::mt19937& random) {
  static const words list(
      "the of and to a in that it was he for is on with as his they at be this from had not but by "
      "what some we can out other were all there when up use your how said each she which their "
      "time will way about many then them would write like these long make thing see him two has "
      "look more day could go come did number sound most people my over know water than call "
      "first who may down side been now find any new work part take get place made live where "
      "after back little only round man year came show every good give our under name very through "
      "just form sentence great think say help low line differ turn cause much mean before move "
      "right boy old too same tell does set three want air well also play small end put home read "
      "hand port large spell add even land here must big high such follow act why ask men change "
      "went light kind off need house picture try again animal point mother world near build self "
      "earth father garden kettle harbour lantern quietly remembered extraordinary conversation "
      "mathematics neighbourhood responsibility unquestionably archaeological thunderstorm don't "
      "it's we'll they've she'd I'm couldn't");
  std::string text;
  for (size_t in_line = 0, in_sentence = 0; text.size() < bytes;) {
    std::string word(list.draw(random));
    if (in_sentence == 0 && word[0] >= 'a') word[0] = char(word[0] - 32);
    text += word;
    bool ends = ++in_sentence > 5 && random() % 8 == 0;
    if (ends) in_sentence = 0;
    text += ends ? "." : random() % 12 == 0 ? "," : "";
    in_line += word.size();
    text += ends && in_line > 400 ? (in_line = 0, "\n\n") : " ";
  }
  return text;
}

std::string code(size_t bytes, std::mt19937& random) {
  static const words names(
      "i size value begin end index count result buffer node next_token parse_header left right "
      "length memory request config read_all write_some maxValue getUserName handleError "
      "std::vector "
      "self text_ rows_ uint32_t const auto");
  std::string text;
  auto name = [&] { return std::string(names.draw(random)); };
  while (text.size() < bytes) {
    text +=
        fmt::format("static int {}({} {}, {}& {}) {{\n", name(), name(), name(), name(), name());
    for (size_t i = random() % 6; i > 0; --i)
      text += fmt::format(
          "  for (size_t {0} = {1}; {0} < {2}.size(); ++{0})\n    {3}[{0}] += {4}({5}"
          " * 0x{1:x} - {0});\t// {6} of {5}\n",
          name(), random() % 4096, name(), name(), name(), name(), name());
    text +=
        fmt::format("  if (!{0} || {1} >= {2}) return -{3};\n  return \"{0}: %d\\n\", {1};\n}}\n\n",
                    name(), name(), name(), random() % 100);
  }
  return text;
}

void append_range(std::string& text, char32_t first, uint32_t count, size_t length,
                  std::mt19937& random) {
  for (size_t i = 0; i < length; ++i)
    utf8::append(text, char32_t(first + (random() % count) * (random() % count) / count));
}

/// Chinese, Japanese, Russian, Arabic, Hindi and French by turns.
std::string mixed(size_t bytes, std::mt19937& random) {
  std::string text;
  while (text.size() < bytes) {
    switch (random() % 6) {
      case 0:
      case 1:
        append_range(text, 0x4E00, 3000, 4 + random() % 20, random), text += "，";
        break;
      case 2:
        append_range(text, 0x3041, 80, 3 + random() % 10, random), text += "。";
        break;
      case 3:
        append_range(text, 0x430, 32, 2 + random() % 9, random), text += ' ';
        break;
      case 4:
        append_range(text, 0x627, 36, 2 + random() % 7, random), text += ' ';
        break;
      default:
        text += "déjà là-bas naïve ";
        break;
    }
  }
  return text;
}

std::string unbroken(size_t bytes, std::mt19937& random) {
  std::string text;
  while (text.size() < bytes) text += char('a' + random() % 26);
  return text;
}

std::string digits(size_t bytes, std::mt19937& random) {
  std::string text;
  while (text.size() < bytes)
    text += fmt::format("{}{}", random() % 1'000'000, random() % 3 ? " " : ", ");
  return text;
}

std::string emoji(size_t bytes, std::mt19937& random) {
  std::string text;
  while (text.size() < bytes) {
    append_range(text, 0x1F600, 80, 1 + random() % 3, random);
    text += random() % 3 ? " " : "\u200D\u2764\uFE0F";
  }
  return text;
}

struct kind_of_text {
  const char* name;
  std::string (*make)(size_t bytes, std::mt19937& random);
};
constexpr kind_of_text kinds[] = {{"prose", prose},       {"code", code},     {"mixed", mixed},
                                  {"unbroken", unbroken}, {"digits", digits}, {"emoji", emoji}};

/// At a character's end.
std::string cut_to(std::string text, size_t bytes) {
  size_t end = std::min(bytes, text.size());
  while (end > 0 && end < text.size() && (uint8_t(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

ids encoded(const tokenizer& t, std::string_view text, std::pmr::memory_resource* memory) {
  auto out = t.encode(text, {.add_special = false}, memory);
  if (!out) throw std::runtime_error(out.why().text);
  return std::move(*out);
}

void check_published(const tokenizer& t, const path& file) {
  simdjson::dom::parser parser;
  for (auto c : parser.load(file.string())["vectors"].get_array()) {
    auto got = encoded(t, c["text"].get_string().value(), std::pmr::get_default_resource());
    size_t i = 0;
    for (uint64_t id : c["ids"].get_array())
      if (i >= got.size() || got[i++] != id)
        throw std::runtime_error(file.string() + ": other ids than the published ones");
    if (i != got.size()) throw std::runtime_error(file.string() + ": more ids than published");
  }
}

/// A request's memory is an arena; here one that only grows, given back after each text.
size_t encode_once(const tokenizer& t, const std::string& text) {
  std::pmr::monotonic_buffer_resource memory(text.size() * 16 + (1 << 20));
  return encoded(t, text, &memory).size();
}

struct measured {
  double megabytes_per_second;
  size_t ids;
};

measured measure(const tokenizer& t, const std::vector<std::string>& texts, const flags& f) {
  size_t threads = texts.size(), made = encode_once(t, texts[0]);
  std::vector<size_t> rounds(threads);
  auto begin = steady::now();
  auto until = begin + std::chrono::duration<double>(f.seconds);
  auto work = [&](size_t i) {
    do encode_once(t, texts[i]), ++rounds[i];
    while (steady::now() < until);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (auto& other : others) other.join();
  double took = std::chrono::duration<double>(steady::now() - begin).count(), bytes = 0;
  for (size_t i = 0; i < threads; ++i) bytes += double(rounds[i] * texts[i].size());
  return {bytes / took / 1e6, made};
}

void run_one(const std::string& name, const tokenizer& t, const flags& f) {
  for (const auto& [text_name, make] : kinds) {
    if (!f.text.empty() && f.text != text_name) continue;
    std::vector<std::string> texts;
    for (uint32_t seed : {1, 2}) {
      std::mt19937 random(seed);
      auto bytes = size_t(f.megabytes * 1e6);
      texts.push_back(cut_to(make(bytes, random), bytes));
    }
    auto back = t.decode(encoded(t, texts[0], std::pmr::get_default_resource()), false,
                         std::pmr::get_default_resource());
    if (std::string_view(back).substr(back.size() - texts[0].size()) != texts[0])
      throw std::runtime_error(fmt::format("{}: {} does not decode to itself", name, text_name));
    for (size_t threads : {1, 2}) {
      auto m = measure(t, {texts.begin(), texts.begin() + ptrdiff_t(threads)}, f);
      fmt::print(stderr, "{:10} {:9} {} threads {:8.2f} MB/s\n", name, text_name, threads,
                 m.megabytes_per_second);
      fmt::print(
          "{{\"what\":\"tokenizing\",\"tokenizer\":\"{}\",\"text\":\"{}\",\"threads\":{},"
          "\"mb_per_second\":{:.3f},\"bytes\":{},\"ids\":{}}}\n",
          name, text_name, threads, m.megabytes_per_second, texts[0].size(), m.ids);
      std::fflush(stdout);
    }
  }
}

void run(const flags& f) {
  size_t found = 0;
  for (const char* name : {"gpt-2", "llama-bpe", "llama-spm", "qwen2"}) {
    if (!f.only.empty() && f.only != name) continue;
    path hf = f.tokenizers / (std::string(name) + ".hf");
    auto t = tokenizer::from_json(file_text(hf / "tokenizer.json"),
                                  file_text(hf / "tokenizer_config.json"));
    if (!t) throw std::runtime_error(t.why().text);
    check_published(*t, f.tokenizers / (std::string(name) + ".extra.json"));
    run_one(name, *t, f);
    ++found;
  }
  if (found == 0) throw std::runtime_error(f.only + ": no such tokenizer; leave --only out");
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) try {
  CLI::App app{"How fast texts become token ids; JSON lines on stdout", "tokenize_bench"};
  lethe::flags f;
  app.add_option("TOKENIZERS", f.tokenizers, "the folder of the published tokenizers")->required();
  app.add_option("--only", f.only, "one tokenizer: gpt-2, llama-bpe, llama-spm or qwen2");
  app.add_option("--text", f.text, "one kind: prose, code, mixed, unbroken, digits or emoji");
  app.add_option("--megabytes", f.megabytes, "of each text")->capture_default_str();
  app.add_option("--seconds", f.seconds, "of each measurement, at least")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  lethe::run(f);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "tokenize_bench: {}\n", e.what());
  return 1;
}
