#include "runtime/tokenizer/pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstring>
#include <ctime>
#include <new>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/oniguruma.hpp"

namespace lethe {
namespace {

constexpr size_t expression_bytes_max = size_t{64} << 10;
constexpr uint32_t match_limit = 20'000'000;       // backtracks from one start
constexpr uint32_t heap_limit_kib = 256u << 10;    // PCRE2's own frames
constexpr size_t starts_at_once = 256;             // between two looks at the clock
constexpr double base_s = 1.0, s_per_byte = 2e-6;  // published patterns take 0.1 us a byte

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// PCRE2 frees without a size, so each block starts with its own.
constexpr size_t header = alignof(std::max_align_t);

void* take(size_t bytes, void* memory) {
  try {
    auto* block = static_cast<std::pmr::memory_resource*>(memory)->allocate(bytes + header);
    std::memcpy(block, &bytes, sizeof bytes);
    return static_cast<char*>(block) + header;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void give(void* at, void* memory) {
  if (!at) return;
  void* block = static_cast<char*>(at) - header;
  size_t bytes;
  std::memcpy(&bytes, block, sizeof bytes);
  static_cast<std::pmr::memory_resource*>(memory)->deallocate(block, bytes + header);
}

}  // namespace

match_session::match_session(size_t text_bytes, std::pmr::memory_resource* memory)
    : general_(pcre2_general_context_create(take, give, memory)),
      context_(general_ ? pcre2_match_context_create(general_) : nullptr),
      data_(general_ ? pcre2_match_data_create(1, general_) : nullptr),
      deadline_s_(thread_seconds() + base_s + s_per_byte * double(text_bytes)) {
  if (!context_) return;
  pcre2_set_match_limit(context_, match_limit);
  pcre2_set_heap_limit(context_, heap_limit_kib);
}

match_session::~match_session() {
  pcre2_match_data_free(data_);
  pcre2_match_context_free(context_);
  pcre2_general_context_free(general_);
}

// Reading the clock takes as long as joining some words: only where PCRE2 matches.
match_session::pause::pause(match_session& s)
    : session_(s), since_s_(s.matches_ > 0 ? thread_seconds() : 0) {}
match_session::pause::~pause() {
  if (since_s_ > 0) session_.deadline_s_ += thread_seconds() - since_s_;
}

bool match_session::ready() const { return context_ && data_; }

bool match_session::late() const { return thread_seconds() > deadline_s_; }

void pattern::free_code::operator()(pcre2_code* code) const { pcre2_code_free(code); }

pattern pattern::literal(std::string text) {
  pattern p;
  p.literal_ = std::move(text);
  return p;
}

result<pattern> pattern::regex(std::string_view expression) {
  if (expression.size() > expression_bytes_max)
    return fail("a pattern of {} bytes; at most {} are read", expression.size(),
                expression_bytes_max);
  auto rewritten = pcre2_from_oniguruma(expression);
  if (!rewritten) return rewritten.why();
  constexpr uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
  std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int code = 0;
  size_t where = 0;
  pattern p;
  p.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten->data()), rewritten->size(),
                              options, &code, &where, context.get()));
  if (!p.code_) {
    char why[128] = "";
    pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(why), sizeof why);
    return fail("a pattern does not compile: {}, near byte {}", why, where);
  }
  // Without it the interpreter runs.
  p.compiled_ = pcre2_jit_compile(p.code_.get(), PCRE2_JIT_COMPLETE) == 0;
  return p;
}

result<pattern> pattern::split(std::string_view expression) {
  pattern p;
  p.scanner_ = word_scanner::of(expression);
  if (p.scanner_) return p;
  return regex(expression);
}

match pattern::find(std::string_view text, size_t from, match_session& s) const {
  if (scanner_) {
    if (from >= text.size()) return {};
    return {match::found, from, scanner_->end(text, from)};
  }
  if (!code_) {
    size_t at = literal_.empty() ? text.npos : text.find(literal_, from);
    if (at == text.npos) return {};
    return {match::found, at, at + literal_.size()};
  }
  if (!s.ready() || (++s.matches_ % 64 == 0 && s.late())) return {match::gave_up};
  while (from <= text.size()) {
    size_t last_start = from + starts_at_once;
    match m = attempt(text, from, last_start, s);
    if (m.state != match::none) return m;
    if (text.size() - from > starts_at_once && s.late()) return {match::gave_up};
    from = last_start + 1;
    while (from < text.size() && (uint8_t(text[from]) & 0xC0) == 0x80) from++;
  }
  return {};
}

match pattern::attempt(std::string_view text, size_t from, size_t last_start,
                       match_session& s) const {
  pcre2_set_offset_limit(s.context_, last_start);
  auto run = [&](uint32_t options) {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       options | PCRE2_NO_UTF_CHECK, s.data_, s.context_);
  };
  int rc = !compiled_ ? run(0)
                      : pcre2_jit_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                        text.size(), from, 0, s.data_, s.context_);
  // The compiled code has 32 KiB of stack; the interpreter's frames lie in the caller's memory.
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = run(PCRE2_NO_JIT);
  if (rc == PCRE2_ERROR_NOMATCH) return {};
  const size_t* ends = pcre2_get_ovector_pointer(s.data_);
  if (rc < 0 || ends[0] > ends[1] || ends[0] < from) return {match::gave_up};
  return {match::found, ends[0], ends[1]};
}

error pattern_gave_up() {
  return fail("tokenizer: a split pattern takes too long on this text; send it in parts");
}

}  // namespace lethe
