#include "runtime/api/tool_calls.hpp"

#include <sys/random.h>

#include <algorithm>

#include "runtime/api/pythonic_calls.hpp"
#include "runtime/base/check.hpp"
#include "runtime/json/json_slice.hpp"
#include "runtime/json/json_text.hpp"

namespace lethe {

namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view hermes_marks[] = {"<tool_call>", "</tool_call>"};
constexpr std::string_view mistral_marks[] = {"[TOOL_CALLS]"};
constexpr std::string_view llama_marks[] = {"<|python_tag|>", "<|python_start|>", "<|python_end|>"};

size_t skip_blanks(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(blanks, at), text.size());
}

/// Mistral's templates refuse ids that are not nine letters or digits; others take any.
void write_id(tool_format format, std::pmr::string& out) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz012345";
  unsigned char bits[24];
  check(getrandom(bits, sizeof bits, 0) == ssize_t{sizeof bits});
  bool nine = format == tool_format::mistral;
  if (!nine) out = "call_";
  for (size_t i = 0; i < (nine ? 9 : sizeof bits); ++i) out.push_back(letters[bits[i] % 32]);
}

}  // namespace

tool_format tool_format_of(std::string_view source) {
  auto has = [source](std::string_view mark) { return source.find(mark) != source.npos; };
  if (has("[TOOL_CALLS]")) return tool_format::mistral;
  if (has("<tool_call>")) return tool_format::hermes;
  // Both are how Meta's own instructions to the model put it.
  if (has("[func_name1(")) return tool_format::pythonic;
  if (has("<|python_tag|>") || has("\"parameters\": dictionary")) return tool_format::llama_json;
  return tool_format::none;
}

std::span<const std::string_view> marks_of(tool_format format) {
  switch (format) {
    case tool_format::hermes:
      return hermes_marks;
    case tool_format::mistral:
      return mistral_marks;
    case tool_format::llama_json:
    case tool_format::pythonic:
      return llama_marks;
    case tool_format::none:
      break;
  }
  return {};
}

size_t bracket_scan::run(std::string_view text) {
  for (; !closed && at < text.size(); ++at) {
    char c = text[at];
    if (quote) {
      if (!escaped && c == quote) quote = 0;
      escaped = !escaped && c == '\\';
    } else if (c == '"' || (python && c == '\'')) {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      closed = --depth == 0;
    }
  }
  return closed ? at : std::string_view::npos;
}

tool_reader::tool_reader(tool_format format, std::pmr::memory_resource* memory)
    : format_(format),
      memory_(memory),
      content_(memory),
      calls_(memory),
      found_(memory),
      words_(format == tool_format::none) {}

void tool_reader::read(std::string_view text, bool ended) {
  if (words_) return say(text, text.size());
  bool marked = format_ == tool_format::hermes || format_ == tool_format::mistral;
  marked ? read_marked(text, ended) : read_alone(text, ended);
}

void tool_reader::say(std::string_view text, size_t end) {
  content_.append(text.substr(at_, end - at_));
  at_ = end;
}

/// Calls stand behind marks, between words. Blanks before a call are none of the words.
void tool_reader::read_marked(std::string_view text, bool ended) {
  std::string_view mark = marks_of(format_).front();
  while (at_ < text.size()) {
    if (!opened_) {
      size_t begin = std::min(text.find(mark, at_), text.size());
      bool found = begin < text.size();
      // The longest end of the text that a mark could begin with.
      size_t part = found || ended ? 0 : std::min(mark.size() - 1, text.size() - at_);
      while (part > 0 && !mark.starts_with(text.substr(text.size() - part))) --part;
      size_t words = text.substr(0, begin - part).find_last_not_of(blanks) + 1;  // npos + 1 == 0
      if (!found && ended && (words > at_ || at_ != call_end_)) words = text.size();
      say(text, std::max(at_, words));
      if (!found) return;
      opened_ = true;
      next_ = begin + mark.size();
      scan_ = {};
    }
    auto is = marked_call(text, ended);
    if (is == verdict::open) return;
    opened_ = false;
    if (is == verdict::call)
      at_ = call_end_ = next_;
    else
      say(text, text.find(mark, at_) + mark.size());
    std::ranges::move(found_, std::back_inserter(calls_));
    found_.clear();
  }
}

/// What stands behind a mark. After a call, `next_` is behind it.
tool_reader::verdict tool_reader::marked_call(std::string_view text, bool ended) {
  verdict later = ended ? verdict::words : verdict::open;
  bool hermes = format_ == tool_format::hermes;
  size_t begin = skip_blanks(text, next_);
  if (begin == text.size()) return later;
  if (text[begin] != (hermes ? '{' : '[')) return verdict::words;
  scan_.at = std::max(scan_.at, begin);
  size_t end = scan_.run(text);
  if (end == text.npos) return later;
  next_ = end;
  if (hermes) {
    constexpr std::string_view close = hermes_marks[1];
    next_ = skip_blanks(text, end);
    auto rest = text.substr(next_, close.size());
    if (!close.starts_with(rest)) return verdict::words;
    // A model that ends its turn may leave the closing mark out.
    if (rest.size() < close.size() && !ended) return next_ = begin, verdict::open;
    next_ += rest.size();
  }
  return take(text.substr(begin, end - begin)) ? verdict::call : verdict::words;
}

/// Calls are the whole answer, or it has none.
void tool_reader::read_alone(std::string_view text, bool ended) {
  auto is = alone(text, ended);
  if (is == verdict::open) return;
  if (is == verdict::call) {
    std::ranges::move(found_, std::back_inserter(calls_));
    at_ = text.size();
  }
  found_.clear();
  words_ = true;
  say(text, text.size());
}

tool_reader::verdict tool_reader::alone(std::string_view text, bool ended) {
  verdict later = ended ? verdict::words : verdict::open;
  bool python = format_ == tool_format::pythonic;
  for (;;) {
    if (opened_) {
      size_t end = scan_.run(text);
      if (end == text.npos) return later;
      if (!take(text.substr(next_, end - next_))) return verdict::words;
      opened_ = false;
      next_ = end;
    }
    // Llama separates its calls by semicolons, if at all.
    next_ = std::min(text.find_first_not_of(" \t\r\n;", next_), text.size());
    auto rest = text.substr(next_);
    if (rest.empty()) return ended && !found_.empty() ? verdict::call : later;
    if (rest.front() == (python ? '[' : '{')) {
      opened_ = true;
      scan_ = {.at = next_, .python = python};
      continue;
    }
    auto mark = std::ranges::find_if(llama_marks, [rest](std::string_view m) {
      return m.starts_with(rest.substr(0, m.size()));
    });
    if (mark == std::end(llama_marks)) return verdict::words;
    if (rest.size() < mark->size()) return later;
    next_ += mark->size();
  }
}

/// Reads what the brackets enclose into `found_`.
bool tool_reader::take(std::string_view value) {
  size_t before = found_.size();
  bool good;
  if (format_ == tool_format::pythonic) {
    good = read_pythonic(value, found_);
  } else if (format_ == tool_format::mistral) {
    auto list = check_json(value);
    good = list && list->is(json_kind::list) &&
           list->each([this](json_slice one) { return take_one(one.raw()); });
  } else {
    good = take_one(value);
  }
  good = good && found_.size() > before;
  if (!good) found_.erase(found_.begin() + ptrdiff_t(before), found_.end());
  for (size_t i = before; i < found_.size(); ++i) write_id(format_, found_[i].id);
  return good;
}

bool tool_reader::take_one(std::string_view text) {
  auto object = check_json(text);
  if (!object || !object->is(json_kind::object)) return false;
  auto name = object->find("name");
  auto arguments = object->find("arguments");
  if (!arguments) arguments = object->find("parameters");
  auto said = name ? name->text(memory_) : std::nullopt;
  if (!said || said->empty()) return false;
  // Without a mark, an object with a name alone may be meant as an answer.
  if (!arguments && format_ == tool_format::llama_json) return false;
  std::pmr::string form("{}", memory_);
  if (arguments && arguments->is(json_kind::text)) {
    form = *arguments->text(memory_);
    auto inner = check_json(form);
    if (!inner || !inner->is(json_kind::object)) return false;
  } else if (arguments && arguments->is(json_kind::object)) {
    form = arguments->raw();
  } else if (arguments && !arguments->is(json_kind::null)) {
    return false;
  }
  found_.push_back({std::pmr::string(memory_), *std::move(said), std::move(form)});
  return true;
}

std::pmr::string tool_calls_json(std::span<const tool_call> calls, uint32_t first, bool streamed,
                                 std::pmr::memory_resource* memory) {
  json_text out(memory);
  out.open('[');
  for (const auto& c : calls) {
    out.open('{');
    if (streamed) out.key("index").number(uint64_t{first++});
    out.key("id").text(c.id).key("type").text("function").key("function").open('{');
    out.key("name").text(c.name).key("arguments").text(c.arguments).close('}').close('}');
  }
  out.close(']');
  return out.str();
}

}  // namespace lethe
