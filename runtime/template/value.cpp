#include "runtime/template/value.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/template/object.hpp"

namespace lethe::jinja {
namespace {

constexpr size_t scan_max = 8;  // entries up to which a scan beats the index

int rank(const value& v) {
  if (v.is(kind::none)) return 0;
  return v.is_number() ? 1 : 2;
}

bool number_before(const value& a, const value& b) {
  if (a.is_whole() && b.is_whole()) return a.as_whole() < b.as_whole();
  const double x = a.as_real(), y = b.as_real();
  if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
  return x < y;
}

}  // namespace

bool key_order::operator()(const value& a, const value& b) const {
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a.is_text()) return a.text < b.text;
  return a.is_number() && number_before(a, b);
}

const dictionary::entry* dictionary::entry_of(const value& key) const {
  if (!can_key(key)) return nullptr;
  if (entries_.size() > scan_max) {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &entries_[at->second];
  }
  const key_order before;
  const auto at = std::ranges::find_if(
      entries_, [&](const entry& e) { return !before(e.key, key) && !before(key, e.key); });
  return at == entries_.end() ? nullptr : &*at;
}

const value* dictionary::find(const value& key) const {
  const entry* e = entry_of(key);
  return e ? &e->held : nullptr;
}

void dictionary::put(const value& key, const value& held) {
  if (const entry* e = entry_of(key)) {
    entries_[size_t(e - entries_.data())].held = held;
    return;
  }
  entries_.push_back({key, held});
  if (entries_.size() == scan_max + 1) index_all();
  if (entries_.size() > scan_max + 1) index_.emplace(key, uint32_t(entries_.size() - 1));
}

void dictionary::erase(const value& key) {
  const entry* e = entry_of(key);
  if (!e) return;
  entries_.erase(entries_.begin() + (e - entries_.data()));
  index_.clear();
  if (entries_.size() > scan_max) index_all();
}

void dictionary::clear() {
  entries_.clear();
  index_.clear();
}

void dictionary::index_all() {
  for (uint32_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key, i);
}

bool truth(const value& v) {
  switch (v.what) {
    case kind::undefined:
    case kind::none:
      return false;
    case kind::boolean:
      return v.flag;
    case kind::integer:
      return v.whole != 0;
    case kind::real:
      return v.number != 0;
    case kind::text:
      return !v.text.empty();
    case kind::list:
    case kind::tuple:
      return v.items->lazy || !v.items->items.empty();
    case kind::dict:
      return v.entries->size() != 0;
    case kind::object:
      return true;
  }
  return false;
}

std::string_view type_name(const value& v) {
  switch (v.what) {
    case kind::undefined:
      return "an undefined value";
    case kind::none:
      return "none";
    case kind::boolean:
      return "a boolean";
    case kind::integer:
      return "an integer";
    case kind::real:
      return "a float";
    case kind::text:
      return "a string";
    case kind::list:
      return "a list";
    case kind::tuple:
      return "a tuple";
    case kind::dict:
      return "a dictionary";
    case kind::object:
      return object_name(*v.thing);
  }
  return "a value";
}

}  // namespace lethe::jinja
