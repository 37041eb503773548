#pragma once

#include <cstddef>
#include <string_view>

namespace lethe {

/// Steps over checked JSON. Positions are offsets into one text.
class json_scan {
 public:
  explicit json_scan(std::string_view text, size_t at = 0) : text_(text), at_(at) {}

  size_t at() const { return at_; }
  bool done() const { return at_ >= text_.size(); }
  char now() const { return done() ? char(0) : text_[at_]; }
  void next(size_t n = 1) { at_ += n; }
  void skip_blanks() {
    while (now() == ' ' || now() == '\n' || now() == '\t' || now() == '\r') ++at_;
  }
  std::string_view rest() const { return text_.substr(at_); }
  std::string_view from(size_t begin) const { return text_.substr(begin, at_ - begin); }

  /// Behind the value that begins here, which was checked before.
  void skip_value();

 private:
  void skip_text();
  std::string_view text_;
  size_t at_;
};

}  // namespace lethe
