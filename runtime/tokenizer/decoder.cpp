#include "runtime/tokenizer/decoder.hpp"

#include <array>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/byte_level.hpp"

namespace lethe::decoders {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The byte that "<0x0A>" stands for, or -1.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int high = hex_digit(token[3]), low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void append_replaced(std::string_view in, std::string_view what, std::string_view with,
                     std::pmr::string& out) {
  size_t copied = 0;
  for (size_t at; !what.empty() && (at = in.find(what, copied)) != in.npos;) {
    out.append(in.substr(copied, at - copied)).append(with);
    copied = at + what.size();
  }
  out.append(in.substr(copied));
}

void append_matches_replaced(std::string_view in, const replace& r, std::pmr::string& out) {
  if (utf8::first_invalid(in) != in.npos) return void(out.append(in));
  match_session session(in.size(), out.get_allocator().resource());
  size_t copied = 0, from = 0;
  while (from <= in.size()) {
    match m = r.what.find(in, from, session);
    if (m.state != match::found) break;
    out.append(in.substr(copied, m.begin - copied)).append(r.with);
    copied = m.end;
    from = m.end;
    if (m.begin == m.end) from += from < in.size() ? utf8::at(in, from).length : 1;
  }
  out.append(in.substr(copied));
}

// How much of the end of `text` may be the start of `what`.
size_t open_end(std::string_view text, std::string_view what) {
  if (what.empty()) return 0;
  size_t n = std::min(text.size(), what.size() - 1);
  while (n > 0 && !what.starts_with(text.substr(text.size() - n))) n--;
  return n;
}

// BERT's way to undo the spaces around punctuation and contractions.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> cleanups = {{
    {" .", "."},
    {" ?", "?"},
    {" !", "!"},
    {" ,", ","},
    {" ' ", "'"},
    {" n't", "n't"},
    {" 'm", "'m"},
    {" do not", " don't"},
    {" 's", "'s"},
    {" 've", "'ve"},
    {" 're", "'re"},
}};

std::string_view name_of(const step& s) {
  constexpr std::array<std::string_view, 9> names = {"ByteLevel", "ByteFallback", "Fuse",
                                                     "Strip",     "Replace",      "Metaspace",
                                                     "WordPiece", "BPEDecoder",   "no decoder"};
  return names[s.index()];
}

bool makes_stream(const step& s) {
  return std::holds_alternative<byte_level>(s) || std::holds_alternative<fuse>(s);
}

}  // namespace

result<void> validate(std::span<const step> steps) {
  bool fused = false;
  for (const step& s : steps) {
    bool on_streams = std::holds_alternative<fuse>(s) || std::holds_alternative<strip>(s) ||
                      std::holds_alternative<replace>(s);
    if (fused && !on_streams)
      return fail("decoder {} after Fuse or ByteLevel is not supported", name_of(s));
    fused |= makes_stream(s);
  }
  return {};
}

/// One step's treatment of one token (or, in a stream, of one part).
struct run::visitor {
  run& chain;
  size_t at;
  std::string_view token;
  bool literal;
  std::pmr::string& out;

  state& mine() { return chain.states_[at]; }
  std::pmr::memory_resource* memory() { return out.get_allocator().resource(); }
  void next(std::string_view text) { chain.pass(at + 1, text, literal, out); }

  void operator()(const byte_level&) {
    std::pmr::string bytes(memory());
    if (literal || !lethe::byte_level::append_bytes(token, bytes)) return next(token);
    next(bytes);
  }
  void operator()(const byte_fallback&) {
    int byte = literal ? -1 : byte_of(token);
    char b = char(byte);
    next(byte < 0 ? token : std::string_view(&b, 1));
  }
  void operator()(const fuse&) { next(token); }
  void operator()(const strip& s);
  void operator()(const replace& r);
  void operator()(const metaspace& m) {
    bool first = mine().tokens == 0 && m.drops_in_first;
    std::pmr::string spaced(memory());
    append_replaced(token, m.replacement, first ? "" : " ", spaced);
    next(spaced);
  }
  void operator()(const wordpiece& w);
  void operator()(const word_suffix& w) {
    if (mine().tokens > 0) pass_word(w, " ");
    mine().held = token;
  }
  void operator()(const join& j) {
    std::pmr::string text(mine().tokens > 0 ? std::string_view(j.separator) : "", memory());
    text += token;
    next(text);
  }

  void pass_word(const word_suffix& w, std::string_view end) {
    std::pmr::string text(memory());
    append_replaced(mine().held, w.suffix, end, text);
    next(text);
  }
  void strip_stream(const strip& s);
};

void run::visitor::operator()(const strip& s) {
  if (mine().fused) return strip_stream(s);
  std::string_view text = token;
  for (size_t i = 0; i < s.start && text.starts_with(s.content); i++)
    text.remove_prefix(s.content.size());
  for (size_t i = 0; i < s.stop && text.ends_with(s.content); i++)
    text.remove_suffix(s.content.size());
  next(text);
}

// Holds what may turn out to be the content to strip: at the head, and always at the tail.
void run::visitor::strip_stream(const strip& s) {
  auto& m = mine();
  m.held += token;
  std::string_view text = m.held;
  while (!m.head_done) {
    bool stripped = m.stripped < s.start && text.starts_with(s.content);
    if (!stripped) {
      if (m.stripped < s.start && s.content.starts_with(text)) break;
      m.head_done = true;
    } else {
      text.remove_prefix(s.content.size());
      m.stripped++;
    }
  }
  size_t tail = text.size();
  if (m.head_done && s.stop == 0) tail = 0;
  if (m.head_done && s.stop > 0) {
    tail = open_end(text, s.content);
    std::string_view before = text.substr(0, text.size() - tail);
    for (size_t i = 0; i < s.stop && before.ends_with(s.content); i++) {
      before.remove_suffix(s.content.size());
      tail += s.content.size();
    }
  }
  std::pmr::string ready(text.substr(0, text.size() - tail), memory());
  m.held.erase(0, m.held.size() - tail);
  if (!ready.empty()) next(ready);
}

void run::visitor::operator()(const replace& r) {
  std::pmr::string text(memory());
  if (!mine().fused) {
    if (r.is_regex)
      append_matches_replaced(token, r, text);
    else
      append_replaced(token, r.literal, r.with, text);
    return next(text);
  }
  auto& held = mine().held;
  held += token;
  if (r.is_regex) return;  // the next part may change any match: all waits for the end
  size_t done = 0;
  for (size_t found; (found = held.find(r.literal, done)) != held.npos;) {
    text.append(std::string_view(held).substr(done, found - done)).append(r.with);
    done = found + r.literal.size();
  }
  std::string_view rest = std::string_view(held).substr(done);
  size_t open = open_end(rest, r.literal);
  text.append(rest.substr(0, rest.size() - open));
  held.erase(0, held.size() - open);
  if (!text.empty()) next(text);
}

void run::visitor::operator()(const wordpiece& w) {
  std::pmr::string text(memory());
  if (mine().tokens == 0)
    text = token;
  else if (!w.prefix.empty() && token.starts_with(w.prefix))
    text = token.substr(w.prefix.size());
  else
    text.append(" ").append(token);
  for (auto [from, to] : cleanups) {
    if (!w.cleanup) break;
    std::pmr::string cleaned(memory());
    append_replaced(text, from, to, cleaned);
    text.swap(cleaned);
  }
  next(text);
}

run::run(std::span<const step> steps, std::pmr::memory_resource* memory, bool middle)
    : steps_(steps), states_(memory), middle_(middle) {
  states_.reserve(steps.size());
  bool fused = false;
  for (const step& s : steps) {
    auto& mine = states_.emplace_back(memory);
    mine.fused = fused;
    mine.tokens = middle;
    mine.head_done = middle;
    fused |= makes_stream(s);
  }
}

void run::pass(size_t at, std::string_view token, bool literal, std::pmr::string& out) {
  if (at == steps_.size()) return void(out.append(token));
  std::visit(visitor{*this, at, token, literal, out}, steps_[at]);
  states_[at].tokens++;
}

void run::push(std::string_view token, bool literal, std::pmr::string& out) {
  pass(0, token, literal, out);
}

void run::finish(std::pmr::string& out) {
  for (size_t at = 0; at < steps_.size(); at++) {
    auto& mine = states_[at];
    visitor here{*this, at, {}, false, out};
    std::pmr::string text(out.get_allocator().resource());
    if (auto* w = std::get_if<word_suffix>(&steps_[at])) {
      if (mine.tokens > middle_) here.pass_word(*w, middle_ ? " " : "");
    } else if (auto* s = std::get_if<strip>(&steps_[at])) {
      text = mine.held;
      for (size_t i = 0; !middle_ && i < s->stop && text.ends_with(s->content); i++)
        text.resize(text.size() - s->content.size());
      if (!text.empty()) here.next(text);
    } else if (auto* r = std::get_if<replace>(&steps_[at])) {
      if (r->is_regex)
        append_matches_replaced(mine.held, *r, text);
      else
        text = mine.held;
      if (!text.empty()) here.next(text);
    }
    mine.held.clear();
    mine.tokens = mine.stripped = 0;
    mine.head_done = false;
  }
}

}  // namespace lethe::decoders
