#include "runtime/template/print.hpp"

#include <charconv>
#include <cmath>
#include <utility>

#include "runtime/template/builtin.hpp"
#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

void append_character(text_sink& to, char32_t c, std::string_view bytes, char quote) {
  const auto number = uint32_t(c);
  if (c == U'\n') return to.append("\\n");
  if (c == U'\r') return to.append("\\r");
  if (c == U'\t') return to.append("\\t");
  if (c == U'\\') return to.append("\\\\");
  if (c == char32_t(quote)) to.append('\\');
  if (is_printable(c)) return to.append(bytes);
  if (c < 0x100) return to.append(fmt::format("\\x{:02x}", number));
  to.append(c < 0x10000 ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number));
}

void append_quoted(rendering& r, text_sink& to, std::string_view text) {
  if (!r.step(4 * text.size())) return;
  const bool doubled = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = doubled ? '"' : '\'';
  to.append(quote);
  for (size_t at = 0; at < text.size() && r.ok();) {
    const size_t from = at;
    const char32_t c = next_point(text, at);
    append_character(to, c, text.substr(from, at - from), quote);
  }
  to.append(quote);
}

void append_row(rendering& r, text_sink& to, const value& v) {
  const bool tuple = v.is(kind::tuple);
  to.append(tuple ? '(' : '[');
  for (size_t i = 0; i < v.items->items.size() && r.ok(); ++i) {
    if (i != 0) to.append(", ");
    append_repr(r, to, v.items->items[i]);
  }
  if (tuple && v.items->items.size() == 1) to.append(',');
  to.append(tuple ? ')' : ']');
}

void append_dict(rendering& r, text_sink& to, const dictionary& d) {
  to.append('{');
  bool first = true;
  for (const auto& [key, held] : d.all()) {
    if (!r.ok()) return;
    if (!std::exchange(first, false)) to.append(", ");
    append_repr(r, to, key);
    to.append(": ");
    append_repr(r, to, held);
  }
  to.append('}');
}

}  // namespace

std::string_view real_text(double d, std::span<char, 32> room) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  // Python writes an exponent below 1e-4 and from 1e16 on; the shortest digits in both cases.
  const double size = std::fabs(d);
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto end = std::to_chars(room.data(), room.data() + room.size() - 2, d, format);
  std::string_view text(room.data(), size_t(end.ptr - room.data()));
  if (scientific || text.find('.') != text.npos) return text;
  *end.ptr = '.';
  end.ptr[1] = '0';
  return {room.data(), text.size() + 2};
}

void append_repr(rendering& r, text_sink& to, const value& v) {
  const deeper level(r);
  if (!level || !r.step()) return;
  switch (v.what) {
    case kind::undefined:
      return to.append("Undefined");
    case kind::text:
      return append_quoted(r, to, v.text);
    case kind::list:
    case kind::tuple:
      return append_row(r, to, v);
    case kind::dict:
      return append_dict(r, to, *v.entries);
    default:
      return append_text(r, to, v);
  }
}

void append_text(rendering& r, text_sink& to, const value& v) {
  char room[32];
  switch (v.what) {
    case kind::undefined:
      return;
    case kind::none:
      return to.append("None");
    case kind::boolean:
      return to.append(v.flag ? "True" : "False");
    case kind::integer: {
      const auto end = std::to_chars(room, room + sizeof room, v.whole);
      return to.append(std::string_view(room, size_t(end.ptr - room)));
    }
    case kind::real:
      return to.append(real_text(v.number, room));
    case kind::text:
      return to.append(v.text);
    case kind::object:
      return void(r.fail("{} cannot be printed", type_name(v)));
    default:
      return append_repr(r, to, v);
  }
}

std::string_view as_text(rendering& r, const value& v) {
  if (v.is_text()) return v.text;
  text_sink text(r);
  append_text(r, text, v);
  return text.view();
}

}  // namespace lethe::jinja
