#include "runtime/batch/stop_matcher.hpp"

#include <algorithm>
#include <limits>

#include "runtime/base/limits.hpp"

namespace lethe {

static_assert(limits::stop_bytes_max <= std::numeric_limits<uint16_t>::max());

result<stop_matcher> stop_matcher::make(std::span<const std::string_view> stops, bool include_stop,
                                        std::pmr::memory_resource* memory) {
  if (stops.size() > limits::stops_max) {
    return fail("stop: {} strings; at most {} are allowed", stops.size(), limits::stops_max);
  }
  stop_matcher matcher(include_stop, memory);
  for (size_t i = 0; i < stops.size(); ++i) {
    size_t bytes = stops[i].size();
    if (bytes == 0) return fail("stop[{}] is empty; leave it out", i);
    if (bytes > limits::stop_bytes_max) {
      return fail("stop[{}] has {} bytes; at most {} are allowed", i, bytes,
                  limits::stop_bytes_max);
    }
    matcher.add(stops[i]);
  }
  return matcher;
}

stop_matcher stop_matcher::fork(std::pmr::memory_resource* memory) const {
  stop_matcher copy(include_, memory);
  copy.stops_ = stops_;
  copy.text_ = text_;
  copy.failure_ = failure_;
  copy.pending_ = pending_;
  copy.given_ = given_;
  copy.stopped_ = stopped_;
  copy.which_ = which_;
  return copy;
}

void stop_matcher::add(std::string_view text) {
  auto begin = uint32_t(text_.size());
  text_ += text;
  failure_.resize(text_.size());
  uint16_t* failure = failure_.data() + begin;
  uint16_t matched = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    while (matched > 0 && text[i] != text[matched]) matched = failure[matched - 1];
    if (text[i] == text[matched]) ++matched;
    failure[i] = matched;
  }
  stops_.push_back({.begin = begin, .length = uint32_t(text.size()), .matched = 0});
}

void stop_matcher::advance(stop& s, char c) const {
  const char* text = text_.data() + s.begin;
  while (s.matched > 0 && c != text[s.matched]) s.matched = failure_[s.begin + s.matched - 1];
  if (c == text[s.matched]) ++s.matched;
}

/// Whether `c` completes a stop string.
bool stop_matcher::take(char c) {
  uint32_t longest = 0;
  for (stop& s : stops_) {
    advance(s, c);
    if (s.matched < s.length) continue;
    s.matched = failure_[s.begin + s.length - 1];
    if (s.length <= longest) continue;
    longest = s.length;
    which_ = uint32_t(&s - stops_.data());
  }
  return longest > 0;
}

std::string_view stop_matcher::feed(std::string_view piece, bool may_end) {
  pending_.erase(0, given_);
  given_ = 0;
  if (stopped_) return {};
  for (char c : piece) {
    pending_ += c;
    if (!take(c) || !may_end) continue;
    stopped_ = true;
    given_ = pending_.size() - (include_ ? 0 : stops_[which_].length);
    pending_.resize(given_);
    return pending_;
  }
  uint32_t held = 0;
  for (const stop& s : stops_) held = std::max(held, s.matched);
  given_ = pending_.size() - held;
  return std::string_view(pending_).substr(0, given_);
}

std::string_view stop_matcher::finish() {
  pending_.erase(0, given_);
  given_ = pending_.size();
  for (stop& s : stops_) s.matched = 0;
  return pending_;
}

}  // namespace lethe
