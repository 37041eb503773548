#include "runtime/batch/lookahead.hpp"

#include <algorithm>

namespace lethe {

namespace {

// As many tokens must have stood together before; more of them decide between several places.
constexpr size_t alike_least = 3, alike_most = 8;
constexpr uint32_t rest_most = 32;

class words {
 public:
  words(std::span<const uint32_t> prompt, std::span<const uint32_t> answer)
      : prompt_(prompt), answer_(answer) {}

  size_t size() const { return prompt_.size() + answer_.size(); }
  uint32_t operator[](size_t i) const {
    return i < prompt_.size() ? prompt_[i] : answer_[i - prompt_.size()];
  }
  /// Tokens before `end` that are the last ones of all.
  size_t alike(size_t end) const {
    size_t n = 0, most = std::min(end, alike_most);
    while (n < most && (*this)[end - 1 - n] == (*this)[size() - 1 - n]) ++n;
    return n;
  }
  /// Behind the place where most of the last tokens stood before, of several the latest; 0: none.
  size_t stood_before() const {
    size_t found = 0, best = alike_least - 1;
    for (size_t end = size() - 1; end > best; --end) {
      size_t n = alike(end);
      if (n <= best) continue;
      found = end, best = n;
      if (n == alike_most) break;
    }
    return found;
  }

 private:
  std::span<const uint32_t> prompt_, answer_;
};

}  // namespace

uint32_t lookahead::guess(std::span<const uint32_t> prompt, std::span<const uint32_t> answer,
                          std::span<uint32_t> room) {
  if (rest_ > 0) return --rest_, 0;
  words all(prompt, answer);
  size_t from = all.size() > alike_least ? all.stood_before() : 0;
  if (from == 0) return 0;
  auto n = uint32_t(std::min<size_t>(reach_, room.size()));
  // What repeats itself runs on into its own guesses.
  for (uint32_t i = 0; i < n; ++i)
    room[i] = from + i < all.size() ? all[from + i] : room[from + i - all.size()];
  return n;
}

void lookahead::learn(uint32_t tried, uint32_t right) {
  if (tried == 0) return;
  reach_ = std::clamp(right == tried ? 2 * tried : right + 1, least, most);
  misses_ = right == 0 ? misses_ + 1 : 0;
  if (right == 0) rest_ = std::min(uint32_t{1} << std::min(misses_, 31u), rest_most);
}

}  // namespace lethe
