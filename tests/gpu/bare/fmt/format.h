#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

// What a shard's sources use of fmt, for machines that have nvcc and g++ alone: {} and {:0WIDTH}.
// Any other format does not compile. Names of their own keep it apart from the library.

namespace fmt {
inline namespace bare {

struct hole {
  size_t begin = 0, end = 0;  // of its text; end 0: there is none
  size_t width = 0;
};

constexpr hole next_hole(std::string_view text, size_t from) {
  size_t begin = text.find_first_of("{}", from);
  if (begin == text.npos) return {};
  size_t end = text.find('}', begin);
  if (text[begin] == '}' || end == text.npos) throw "a brace that is no hole";
  hole found{.begin = begin, .end = end + 1};
  std::string_view how = text.substr(begin + 1, end - begin - 1);
  if (how.empty()) return found;
  if (!how.starts_with(":0") || how.size() == 2) throw "neither {} nor {:0WIDTH}";
  for (char digit : how.substr(2)) {
    if (digit < '0' || digit > '9') throw "neither {} nor {:0WIDTH}";
    found.width = found.width * 10 + size_t(digit - '0');
  }
  return found;
}

template <class... Args>
class counted_format {
 public:
  template <std::convertible_to<std::string_view> Text>
  consteval counted_format(const Text& text) : text_(text) {
    size_t holes = 0;
    for (hole h = next_hole(text_, 0); h.end; h = next_hole(text_, h.end)) ++holes;
    if (holes != sizeof...(Args)) throw "holes and arguments differ in number";
  }
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};
template <class... Args>
using format_string = counted_format<std::type_identity_t<Args>...>;

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, char>) {
    return std::string(1, value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    char digits[64];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  } else {
    return std::string(std::string_view(value));
  }
}

template <class... Args>
std::string format(format_string<Args...> format, Args&&... args) {
  std::string_view text = format.text();
  std::string made;
  size_t at = 0;
  [[maybe_unused]] auto put = [&](const auto& arg) {
    hole h = next_hole(text, at);
    std::string shown = text_of(arg);
    made.append(text.substr(at, h.begin - at));
    if (shown.size() < h.width) made.append(h.width - shown.size(), '0');
    made.append(shown);
    at = h.end;
  };
  (put(args), ...);
  return made.append(text.substr(at));
}

}  // namespace bare
}  // namespace fmt
