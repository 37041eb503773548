#include <algorithm>
#include <string>

#include "runtime/grammar/schema_compiler.hpp"

namespace lethe {

namespace {

using expr = grammar_builder::expr;

/// Digits of numbers in a range: where they are equal to a bound so far, the next is bounded, too.
class digit_ranges {
 public:
  digit_ranges(grammar_builder& b, json_rules& json) : b_(b), json_(json) {}

  /// From `least` to `most`, without leading zeros.
  expr between(uint64_t least, uint64_t most) {
    std::pmr::vector<expr> ways(b_.memory());
    std::string low = std::to_string(least);
    std::string high = std::to_string(most);
    for (size_t length = low.size(); length <= high.size(); ++length) {
      auto from = length == low.size() ? low : "1" + std::string(length - 1, '0');
      auto to = length == high.size() ? high : std::string(length, '9');
      ways.push_back(same_length(from, to));
    }
    return b_.either(ways);
  }

 private:
  expr any(size_t digits) {
    return b_.repeat(json_.digit('0', '9'), uint32_t(digits), uint32_t(digits));
  }

  expr same_length(std::string_view low, std::string_view high) {
    if (low.empty()) return {};
    if (low[0] == high[0])
      return b_.sequence(
          {b_.literal(low.substr(0, 1)), same_length(low.substr(1), high.substr(1))});
    std::pmr::vector<expr> ways(b_.memory());
    ways.push_back(beyond(low, true));
    if (high[0] - low[0] > 1)
      ways.push_back(
          b_.sequence({json_.digit(char(low[0] + 1), char(high[0] - 1)), any(low.size() - 1)}));
    ways.push_back(beyond(high, false));
    return b_.either(ways);
  }

  /// Begins with the bound's first digit, and is at least (or at most) the bound.
  expr beyond(std::string_view bound, bool above) {
    expr rest;
    for (size_t i = bound.size(); i-- > 1;) {
      char low = above ? char(bound[i] + 1) : '0', high = above ? '9' : char(bound[i] - 1);
      auto equal = b_.sequence({b_.literal(bound.substr(i, 1)), rest});
      if (low > high)
        rest = equal;
      else
        rest = b_.either({equal, b_.sequence({json_.digit(low, high), any(bound.size() - 1 - i)})});
    }
    return b_.sequence({b_.literal(bound.substr(0, 1)), rest});
  }

  grammar_builder& b_;
  json_rules& json_;
};

// A bound for what has none: 18 digits.
constexpr int64_t any_integer = 999'999'999'999'999'999;

uint64_t without_sign(int64_t negative) { return uint64_t{0} - uint64_t(negative); }

}  // namespace

expr integers_between(grammar_builder& b, json_rules& json, std::optional<int64_t> least,
                      std::optional<int64_t> most) {
  digit_ranges digits(b, json);
  std::pmr::vector<expr> ways(b.memory());
  if (!least || *least < 0) {
    uint64_t smallest = most && *most < 0 ? without_sign(*most) : 1;
    uint64_t largest = without_sign(least.value_or(std::min(-any_integer, most.value_or(0))));
    ways.push_back(b.sequence({b.literal("-"), digits.between(smallest, largest)}));
  }
  if (!most || *most >= 0) {
    uint64_t smallest = least && *least > 0 ? uint64_t(*least) : 0;
    ways.push_back(digits.between(
        smallest, uint64_t(most.value_or(std::max(any_integer, least.value_or(0))))));
  }
  return b.either(ways);
}

}  // namespace lethe
