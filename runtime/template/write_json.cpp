#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/template/builtin.hpp"
#include "runtime/template/json.hpp"
#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

class json_writer {
 public:
  json_writer(rendering& r, text_sink& to, const json_style& style)
      : r_(r), to_(to), style_(style) {}

  void write(const value& v, size_t depth) {
    const deeper level(r_);
    if (!level || !r_.step()) return;
    switch (v.what) {
      case kind::none:
        return to_.append("null");
      case kind::boolean:
        return to_.append(v.flag ? "true" : "false");
      case kind::integer:
        return append_text(r_, to_, v);
      case kind::real:
        return number(v);
      case kind::text:
        return quoted(v.text);
      case kind::list:
      case kind::tuple:
        return row(v.items->items, depth);
      case kind::dict:
        return dict(*v.entries, depth);
      default:
        return void(r_.fail("tojson of {}", type_name(v)));
    }
  }

 private:
  void number(const value& v) {
    if (std::isfinite(v.number)) return append_text(r_, to_, v);
    to_.append(std::isnan(v.number) ? "NaN" : v.number < 0 ? "-Infinity" : "Infinity");
  }

  void new_line(size_t depth) {
    if (!style_.lines) return;
    to_.append('\n');
    for (size_t i = 0; i < depth && r_.ok(); ++i) to_.append(style_.indent);
  }

  void row(std::span<const value> items, size_t depth) {
    to_.append('[');
    for (size_t i = 0; i < items.size() && r_.ok(); ++i) {
      if (i != 0) to_.append(style_.between);
      new_line(depth + 1);
      write(items[i], depth + 1);
    }
    if (!items.empty()) new_line(depth);
    to_.append(']');
  }

  void dict(const dictionary& d, size_t depth) {
    to_.append('{');
    std::pmr::vector<const dictionary::entry*> order(r_.memory());
    if (!r_.take(2 * sizeof(void*) * d.size())) return;
    for (const auto& e : d.all()) order.push_back(&e);
    if (style_.sorted) sort(order);
    bool first = true;
    for (const auto* e : order) {
      if (!r_.ok()) return;
      if (!std::exchange(first, false)) to_.append(style_.between);
      new_line(depth + 1);
      key(e->key);
      to_.append(style_.after_key);
      write(e->held, depth + 1);
    }
    if (!order.empty()) new_line(depth);
    to_.append('}');
  }

  void sort(std::pmr::vector<const dictionary::entry*>& order) {
    for (const auto* e : order) {
      if (!r_.step(16 * limits::template_bytes_per_step)) return;
      if (e->key.is_text() != order[0]->key.is_text()) {
        return void(r_.fail("tojson: keys of different kinds have no order"));
      }
    }
    std::ranges::sort(order, key_order(), &dictionary::entry::key);
  }

  void key(const value& k) {
    if (k.is_text()) return quoted(k.text);
    to_.append('"');
    write(k, 0);
    to_.append('"');
  }

  void quoted(std::string_view text) {
    to_.append('"');
    size_t from = 0;
    for (size_t at = 0; at < text.size() && r_.ok();) {
      const auto c = static_cast<unsigned char>(text[at]);
      const size_t start = at;
      if (c >= 0x20 && c != '"' && c != '\\' && (c < 0x7F || !style_.ascii)) {
        ++at;
        continue;
      }
      if (c == 0x7F) {
        ++at;
        continue;
      }
      to_.append(text.substr(from, start - from));
      escape(next_point(text, at));
      from = at;
    }
    to_.append(text.substr(from));
    to_.append('"');
  }

  void escape(char32_t c) {
    constexpr std::string_view from = "\"\\\n\r\t\b\f", to = "\"\\nrtbf";
    const size_t i = c < 0x80 ? from.find(char(c)) : from.npos;
    if (i != from.npos) {
      const char pair[] = {'\\', to[i]};
      return to_.append({pair, 2});
    }
    if (c >= 0x10000) {
      to_.append(fmt::format("\\u{:04x}", 0xD800 + ((uint32_t(c) - 0x10000) >> 10)));
      c = 0xDC00 + ((c - 0x10000) & 0x3FF);
    }
    to_.append(fmt::format("\\u{:04x}", uint32_t(c)));
  }

  rendering& r_;
  text_sink& to_;
  const json_style& style_;
};

}  // namespace

void append_json(rendering& r, text_sink& to, const value& v, const json_style& style) {
  json_writer(r, to, style).write(v, 0);
}

}  // namespace lethe::jinja
