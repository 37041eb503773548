#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/tokenizer/word_scanner.hpp"

struct pcre2_real_code_8;
struct pcre2_real_general_context_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace lethe {

/// Memory and time for the matching of one text. All memory is the caller's.
class match_session {
 public:
  match_session(size_t text_bytes, std::pmr::memory_resource* memory);
  match_session(const match_session&) = delete;
  ~match_session();

  /// What is done meanwhile is no matching, and may take any time.
  class pause {
   public:
    explicit pause(match_session& s);
    pause(const pause&) = delete;
    ~pause();

   private:
    match_session& session_;
    double since_s_;
  };

 private:
  friend class pattern;
  bool ready() const;
  bool late() const;
  pcre2_real_general_context_8* general_ = nullptr;
  pcre2_real_match_context_8* context_ = nullptr;
  pcre2_real_match_data_8* data_ = nullptr;
  double deadline_s_ = 0;  // of this thread's processor time
  uint32_t matches_ = 0;
};

struct match {
  enum { found, none, gave_up } state = none;
  size_t begin = 0, end = 0;
};

/// What to look for in a text: a literal or a regular expression. Shareable between threads.
class pattern {
 public:
  static pattern literal(std::string text);
  /// In the dialect of tokenizer.json (Oniguruma), matched by PCRE2: what the two read in
  /// different ways is rewritten, what PCRE2 cannot say is refused.
  static result<pattern> regex(std::string_view expression);
  /// As regex, which it equals; the best known split patterns are scanned for without PCRE2.
  static result<pattern> split(std::string_view expression);

  /// The first match that begins at or after `from`. The text must be valid UTF-8. Gives up
  /// rather than hang.
  match find(std::string_view text, size_t from, match_session& s) const;

 private:
  struct free_code {
    void operator()(pcre2_real_code_8* code) const;
  };
  match attempt(std::string_view text, size_t from, size_t last_start, match_session& s) const;
  std::string literal_;
  std::unique_ptr<pcre2_real_code_8, free_code> code_;
  bool compiled_ = false;  // to the machine's code
  std::optional<word_scanner> scanner_;
};

error pattern_gave_up();

}  // namespace lethe
