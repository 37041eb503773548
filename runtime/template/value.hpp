#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <string_view>
#include <vector>

namespace lethe::jinja {

enum class kind : uint8_t {
  undefined,
  none,
  boolean,
  integer,
  real,
  text,
  list,
  tuple,
  dict,
  object
};

struct sequence;
class dictionary;
struct object;

/// A Python value. Texts and containers are owned by the rendering's memory (or, for literals, by
/// the compiled template); copying a value never copies them.
struct value {
  kind what = kind::undefined;
  union {
    bool flag;
    int64_t whole;
    double number;
    std::string_view text;
    sequence* items;
    dictionary* entries;
    object* thing;
  };

  constexpr value() : whole(0) {}
  constexpr explicit value(bool b) : what(kind::boolean), flag(b) {}
  constexpr explicit value(int64_t i) : what(kind::integer), whole(i) {}
  constexpr explicit value(double d) : what(kind::real), number(d) {}
  constexpr explicit value(std::string_view t) : what(kind::text), text(t) {}
  explicit value(dictionary* d) : what(kind::dict), entries(d) {}
  explicit value(object* o) : what(kind::object), thing(o) {}
  value(kind list_or_tuple, sequence* s) : what(list_or_tuple), items(s) {}

  bool is(kind k) const { return what == k; }
  bool is_text() const { return what == kind::text; }
  bool is_undefined() const { return what == kind::undefined; }
  bool is_sequence() const { return what == kind::list || what == kind::tuple; }
  /// An integer in arithmetic: Python's bool is one.
  bool is_whole() const { return what == kind::integer || what == kind::boolean; }
  bool is_number() const { return is_whole() || what == kind::real; }
  int64_t as_whole() const { return what == kind::boolean ? int64_t{flag} : whole; }
  double as_real() const { return what == kind::real ? number : double(as_whole()); }
};

inline value none_value() {
  value v;
  v.what = kind::none;
  return v;
}

struct sequence {
  explicit sequence(std::pmr::memory_resource* m) : items(m) {}
  std::pmr::vector<value> items;
  bool lazy = false;   // a generator in Python: true even when empty
  bool group = false;  // of groupby: its parts have the names grouper and list, too
};

/// Orders keys as Python tells them apart: 1, 1.0 and True are one key.
struct key_order {
  bool operator()(const value& a, const value& b) const;
};

/// Python's dict: insertion order, lookup in O(log n) whatever the keys are.
class dictionary {
 public:
  struct entry {
    value key, held;
  };

  explicit dictionary(std::pmr::memory_resource* m) : entries_(m), index_(m) {}
  static bool can_key(const value& v) { return v.what >= kind::none && v.what <= kind::text; }

  const value* find(const value& key) const;
  const value* find(std::string_view key) const { return find(value(key)); }
  /// Replaces in place, or appends.
  void put(const value& key, const value& held);
  /// In O(n).
  void erase(const value& key);
  void clear();
  size_t size() const { return entries_.size(); }
  const std::pmr::vector<entry>& all() const { return entries_; }

 private:
  const entry* entry_of(const value& key) const;
  void index_all();

  std::pmr::vector<entry> entries_;
  std::pmr::map<value, uint32_t, key_order> index_;  // empty while a scan is faster
};

/// Python's truth of a value.
bool truth(const value& v);
/// The Python type's name, for error texts.
std::string_view type_name(const value& v);

}  // namespace lethe::jinja
