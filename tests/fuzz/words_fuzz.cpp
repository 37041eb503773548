#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/pattern.hpp"
#include "runtime/tokenizer/word_scanner.hpp"
#include "tests/fuzz/word_patterns.hpp"

using namespace lethe;

// The input is a text, mended to UTF-8. Each known pattern's scanner must cut it where PCRE2 does.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct both {
    pattern regex, split;
  };
  static const auto all = [] {
    std::vector<both> made;
    for (auto known : word_patterns)
      made.push_back({*pattern::regex(known), *pattern::split(known)});
    return made;
  }();
  std::string text;
  utf8::append_mended(text, {reinterpret_cast<const char*>(data), size}, false);
  for (const auto& [regex, split] : all) {
    match_session session(text.size(), std::pmr::get_default_resource());
    for (size_t from = 0; from < text.size();) {
      match m = regex.find(text, from, session), same = split.find(text, from, session);
      if (m.state != match::found || same.state != match::found || m.begin != same.begin ||
          m.end != same.end)
        std::abort();
      from = m.end;
    }
  }
  return 0;
}
