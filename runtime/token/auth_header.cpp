#include "runtime/token/auth_header.hpp"

#include <algorithm>

#include "runtime/token/token_limits.hpp"

namespace lethe {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }
bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z'); }
bool is_token_char(char c) {
  return is_alnum(c) ||
         (c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}
bool is_token68_char(char c) {
  return is_alnum(c) || (c != 0 && std::string_view("-._~+/").find(c) != std::string_view::npos);
}

class auth_reader {
 public:
  explicit auth_reader(std::string_view text) : text_(text) {}

  result<std::vector<auth_scheme>> read() {
    for (skip_separators(); at_ < text_.size(); skip_separators())
      if (auto ok = element(); !ok) return ok.why();
    return std::move(schemes_);
  }

 private:
  char now() const { return at_ < text_.size() ? text_[at_] : char(0); }
  bool at_end() const { return at_ >= text_.size() || now() == ','; }
  void skip_blanks() {
    while (now() == ' ' || now() == '\t') ++at_;
  }
  void skip_separators() {
    while (now() == ' ' || now() == '\t' || now() == ',') ++at_;
  }
  template <class Is>
  std::string_view take(Is is) {
    const size_t from = at_;
    while (at_ < text_.size() && is(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  error bad(const char* what) const {
    return fail("authentication header: {} at byte {}", what, at_);
  }

  /// A scheme with its first parameter, or one more parameter of the scheme before.
  result<void> element() {
    std::string_view name = take(is_token_char);
    if (name.empty()) return bad("no name");
    const size_t behind = at_;
    skip_blanks();
    if (now() == '=') return param(name);
    if (schemes_.size() == limits::auth_schemes_max) return bad("too many schemes");
    schemes_.push_back({name, {}});
    if (at_end()) return {};
    if (at_ == behind) return bad("no blank");
    if (skip_token68()) return {};
    name = take(is_token_char);
    skip_blanks();
    if (name.empty() || now() != '=') return bad("no parameter");
    return param(name);
  }

  bool skip_token68() {
    const size_t from = at_;
    bool any = !take(is_token68_char).empty();
    take([](char c) { return c == '='; });
    skip_blanks();
    if (any && at_end()) return true;
    at_ = from;
    return false;
  }

  result<void> param(std::string_view name) {
    if (schemes_.empty()) return bad("a parameter without a scheme");
    auto& params = schemes_.back().params;
    if (params.size() == limits::auth_params_max) return bad("too many parameters");
    ++at_;  // '='
    skip_blanks();
    auto value = now() == '"' ? quoted() : plain();
    if (!value) return value.why();
    params.push_back({name, *value});
    skip_blanks();
    if (!at_end()) return bad("no comma");
    return {};
  }

  /// RFC 9110 wants a token; base64 with its padding comes without quotes, too.
  result<std::string_view> plain() {
    const size_t from = at_;
    if (take([](char c) { return is_token_char(c) || c == '/'; }).empty()) return bad("no value");
    take([](char c) { return c == '='; });
    return text_.substr(from, at_ - from);
  }

  result<std::string_view> quoted() {
    const size_t from = ++at_;
    for (; at_ < text_.size() && now() != '"'; ++at_) {
      if (now() == '\\') ++at_;
      const auto c = uint8_t(now());
      if ((c < 0x20 && c != '\t') || c == 0x7f) break;
    }
    if (now() != '"') return bad("no end of a quoted text");
    return text_.substr(from, at_++ - from);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<auth_scheme> schemes_;
};

}  // namespace

bool auth_scheme::is(std::string_view scheme) const { return same(name, scheme); }

result<std::optional<std::string_view>> auth_scheme::find(std::string_view param) const {
  std::optional<std::string_view> found;
  for (const auto& p : params) {
    if (!same(p.name, param)) continue;
    if (found) return fail("authentication header: {} is there twice", param);
    found = p.value;
  }
  return found;
}

result<std::vector<auth_scheme>> read_auth(std::string_view value) {
  if (value.size() > limits::auth_header_bytes_max)
    return fail("authentication header: {} bytes; at most {}", value.size(),
                limits::auth_header_bytes_max);
  return auth_reader(value).read();
}

}  // namespace lethe
