#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/grammar/gbnf.hpp"
#include "runtime/grammar/grammar_run.hpp"
#include "runtime/grammar/pattern_rules.hpp"
#include "runtime/grammar/schema.hpp"

namespace {

const lethe::token_trie& words() {
  static const lethe::token_trie trie = [] {
    static std::array<char, 256> bytes;
    std::vector<std::string_view> all;
    for (size_t b = 0; b < 256; ++b) all.emplace_back(&(bytes[b] = char(b)), 1);
    for (auto t : {"{\"", "\":", "ab", "the", "12", "]}", "é", "\\u"}) all.emplace_back(t);
    return lethe::token_trie(all);
  }();
  return trie;
}

/// Follows what is allowed, chosen by `choices`: each token of a mask can be said, and there is
/// one wherever the text may not end.
void follow(lethe::grammar rules, std::string_view choices, std::pmr::memory_resource* memory) {
  lethe::grammar_run run(std::move(rules), words(), 1, words().size(), memory);
  for (char c : choices.substr(0, 24)) {
    auto mask = run.allowed(0);
    if (mask.empty() || run.must_end(0)) return;
    uint32_t id = uint8_t(c), tries = 0;
    while (!(mask[id / 64] >> id % 64 & 1) && ++tries < words().size())
      id = (id + 1) % words().size();
    if (tries == words().size()) return;  // ambiguous beyond the limit of open ways
    if (!run.can_follow(0, words().bytes(id)) || !run.accept_token(0, id)) __builtin_trap();
  }
}

}  // namespace

/// A grammar, schema or pattern of any bytes; the first says which, the last ones choose tokens.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  std::pmr::monotonic_buffer_resource memory;
  auto made = data[0] % 3 == 0   ? lethe::parse_gbnf(text, &memory)
              : data[0] % 3 == 1 ? lethe::schema_grammar(text, &memory)
                                 : lethe::pattern_grammar(text, &memory);
  if (made)
    follow(*std::move(made), text.substr(text.size() - std::min<size_t>(text.size(), 24)), &memory);
  else if (made.why().text.empty())
    __builtin_trap();
  return 0;
}
