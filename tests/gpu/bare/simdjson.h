#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What reading a model uses of simdjson, for machines that have nvcc and g++ alone: a document as a
// tree, members in the file's order. Names of their own keep it apart from the library.

namespace simdjson {
inline namespace bare {

enum error_code { SUCCESS, TAPE_ERROR, DEPTH_ERROR, NUMBER_ERROR, STRING_ERROR, NOT_THERE };

inline const char* error_message(error_code error) {
  switch (error) {
    case SUCCESS:
      return "no error";
    case TAPE_ERROR:
      return "not as JSON is written";
    case DEPTH_ERROR:
      return "nested too deep";
    case NUMBER_ERROR:
      return "a number that cannot be read";
    case STRING_ERROR:
      return "a text that cannot be read";
    case NOT_THERE:
      return "not there, or of another kind";
  }
  return "?";
}

enum class kind { null, boolean, integer, negative, real, text, array, object };

struct node {
  kind is = kind::null;
  bool flag = false;
  uint64_t integer = 0;  // of a negative one its bits
  double real = 0;
  std::string key, text;    // the key under which an object has it
  std::vector<node> items;  // of an array or an object
};

namespace dom {

class array;
class object;

class element {
 public:
  element() = default;
  explicit element(const node* at) : at_(at) {}

  bool is_null() const { return at_->is == kind::null; }
  bool is_bool() const { return at_->is == kind::boolean; }
  explicit operator bool() const { return at_->flag; }

  error_code get(bool& into) const { return give(kind::boolean, into, at_->flag); }
  error_code get(std::string_view& into) const { return give(kind::text, into, at_->text); }
  error_code get(uint64_t& into) const { return give(kind::integer, into, at_->integer); }
  error_code get(int64_t& into) const {
    bool fits = at_->is == kind::negative ||
                (at_->is == kind::integer && at_->integer <= uint64_t(INT64_MAX));
    return give(fits ? at_->is : kind::integer, into, int64_t(at_->integer), fits);
  }
  error_code get(double& into) const {
    if (at_->is == kind::integer) return into = double(at_->integer), SUCCESS;
    if (at_->is == kind::negative) return into = double(int64_t(at_->integer)), SUCCESS;
    return give(kind::real, into, at_->real);
  }
  error_code get(array& into) const;
  error_code get(object& into) const;

 private:
  template <class T, class U>
  error_code give(kind wanted, T& into, const U& value, bool fits = true) const {
    if (at_->is != wanted || !fits) return NOT_THERE;
    into = T(value);
    return SUCCESS;
  }
  const node* at_ = nullptr;
};

/// An element, or why there is none.
class found {
 public:
  explicit found(const node* at) : at_(at) {}
  explicit found(error_code error) : error_(error) {}
  error_code error() const { return error_; }
  template <class T>
  error_code get(T& into) const {
    return error_ ? error_ : element(at_).get(into);
  }
  error_code get(element& into) const {
    if (!error_) into = element(at_);
    return error_;
  }

 private:
  const node* at_ = nullptr;
  error_code error_ = SUCCESS;
};

struct member {
  std::string_view key;
  element value;
};

/// What an array and an object have in common: a walk over what they hold.
template <class Item>
class held {
 public:
  held() = default;
  explicit held(const std::vector<node>* items) : items_(items) {}

  struct walk {
    const node* at;
    Item operator*() const {
      if constexpr (std::is_same_v<Item, member>)
        return {at->key, element(at)};
      else
        return element(at);
    }
    walk& operator++() { return ++at, *this; }
    bool operator==(const walk&) const = default;
  };
  walk begin() const { return {items_->data()}; }
  walk end() const { return {items_->data() + items_->size()}; }
  size_t size() const { return items_->size(); }

 protected:
  const std::vector<node>* items_ = nullptr;
};

class array : public held<element> {
 public:
  using held::held;
  found at(size_t i) const { return i < size() ? found(&(*items_)[i]) : found(NOT_THERE); }
};

class object : public held<member> {
 public:
  using held::held;
  /// The first of that name.
  found at_key(std::string_view key) const {
    for (const node& n : *items_)
      if (n.key == key) return found(&n);
    return found(NOT_THERE);
  }
};

inline error_code element::get(array& into) const {
  if (at_->is != kind::array) return NOT_THERE;
  into = array(&at_->items);
  return SUCCESS;
}
inline error_code element::get(object& into) const {
  if (at_->is != kind::object) return NOT_THERE;
  into = object(&at_->items);
  return SUCCESS;
}

}  // namespace dom

/// Reads one document; what it meets first that is wrong is `error`, and it stops there.
class reading {
 public:
  reading(std::string_view text, size_t depth) : text_(text), depth_(depth) {}

  error_code whole(node& into) {
    value(into, 0);
    if (skip(); !error_ && at_ != text_.size()) fail(TAPE_ERROR);
    return error_;
  }

 private:
  bool fail(error_code error) {
    if (!error_) error_ = error;
    return false;
  }
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(std::string_view word) {
    skip();
    bool here = text_.substr(at_).starts_with(word);
    if (here) at_ += word.size();
    return here;
  }

  bool value(node& into, size_t depth) {
    if (take("{")) return all(into, kind::object, "}", depth + 1);
    if (take("[")) return all(into, kind::array, "]", depth + 1);
    if (take("\"")) return into.is = kind::text, string(into.text);
    if (take("null")) return true;
    into.flag = text_.substr(at_).starts_with("true");
    if (take("true") || take("false")) return into.is = kind::boolean, true;
    return number(into);
  }

  bool all(node& into, kind is, std::string_view end, size_t depth) {
    if (depth > depth_) return fail(DEPTH_ERROR);
    into.is = is;
    if (take(end)) return true;
    do {
      node& item = into.items.emplace_back();
      if (is == kind::object && !(take("\"") && string(item.key) && take(":")))
        return fail(TAPE_ERROR);
      if (!value(item, depth)) return false;
    } while (take(","));
    return take(end) || fail(TAPE_ERROR);
  }

  bool number(node& into) {
    size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
    std::string_view digits = text_.substr(at_, end - at_);
    bool minus = digits.starts_with('-');
    std::string_view plain = digits.substr(minus);
    if (plain.empty() || plain[0] < '0' || plain[0] > '9') return fail(TAPE_ERROR);
    if (plain[0] == '0' && plain.size() > 1 && plain[1] >= '0' && plain[1] <= '9')
      return fail(NUMBER_ERROR);
    at_ = end;
    if (digits.find_first_of(".eE") != digits.npos)
      return into.is = kind::real, exactly(digits, into.real);
    if (!minus) return into.is = kind::integer, exactly(digits, into.integer);
    int64_t below = 0;
    bool good = exactly(digits, below);
    into.is = kind::negative, into.integer = uint64_t(below);
    return good;
  }
  template <class T>
  bool exactly(std::string_view digits, T& into) {
    auto end = digits.data() + digits.size();
    auto [stopped, error] = std::from_chars(digits.data(), end, into);
    size_t dot = digits.find('.');
    bool bare = dot != digits.npos &&
                !(dot + 1 < digits.size() && digits[dot + 1] >= '0' && digits[dot + 1] <= '9');
    return (error == std::errc() && stopped == end && !bare) || fail(NUMBER_ERROR);
  }

  /// Behind its first quote.
  bool string(std::string& into) {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (uint8_t(c) < ' ') break;
      if (c != '\\')
        into += c;
      else if (!escaped(into))
        break;
    }
    return fail(STRING_ERROR);
  }

  /// At a backslash; stays at the last character that belongs to it.
  bool escaped(std::string& into) {
    constexpr std::string_view names = "\"\\/bfnrt", means = "\"\\/\b\f\n\r\t";
    if (++at_ >= text_.size()) return false;
    if (size_t which = names.find(text_[at_]); which != names.npos)
      return into += means[which], true;
    uint32_t code = 0, low = 0;
    if (text_[at_] != 'u' || !four(code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      if (text_.substr(at_ + 1, 2) != "\\u" || (at_ += 2, !four(low)) || low < 0xDC00 ||
          low > 0xDFFF)
        return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return false;
    }
    return put(code, into), true;
  }
  bool four(uint32_t& code) {
    std::string_view digits = text_.substr(at_ + 1, 4);
    auto end = digits.data() + digits.size();
    at_ += 4;
    return digits.size() == 4 && std::from_chars(digits.data(), end, code, 16).ptr == end;
  }
  static void put(uint32_t code, std::string& into) {
    if (code < 0x80) return void(into += char(code));
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    into += char((0xF0 << (3 - more)) | (code >> (6 * more)));
    while (more-- > 0) into += char(0x80 | ((code >> (6 * more)) & 0x3F));
  }

  const std::string_view text_;
  const size_t depth_;
  size_t at_ = 0;
  error_code error_ = SUCCESS;
};

namespace dom {

/// Owns the document that elements view.
class parser {
 public:
  error_code allocate(size_t, size_t depth) { return depth_ = depth, SUCCESS; }
  found parse(std::string_view text) {
    document_ = {};
    error_code error = reading(text, depth_).whole(document_);
    return error ? found(error) : found(&document_);
  }
  found parse(const char* text, size_t bytes, bool) { return parse({text, bytes}); }

 private:
  size_t depth_ = 1024;
  node document_;
};

}  // namespace dom
}  // namespace bare
}  // namespace simdjson
