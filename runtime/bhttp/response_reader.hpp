#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/bhttp/fields.hpp"

namespace lethe {

/// Reads a message/bhttp response of either form (RFC 9292) from bytes cut anywhere. Keeps one
/// unfinished item, at most a field section, and the fields; content goes straight to the caller.
class bhttp_response_reader {
 public:
  explicit bhttp_response_reader(std::pmr::memory_resource* memory,
                                 uint64_t content_bytes_max = limits::bhttp_content_bytes_max)
      : content_bytes_max_(content_bytes_max), held_(memory), head_(memory), tail_(memory) {}
  // Moved, the fields' bytes stay where they are.
  bhttp_response_reader(bhttp_response_reader&&) noexcept = default;

  /// Reads on; content found in `piece` is appended to `content`. A reader that refused a piece
  /// refuses all that follows.
  result<void> feed(std::string_view piece, std::pmr::string& content);
  /// To be called where the bytes end: refuses a response that was cut off. Sections left out
  /// there count as empty (section 3.8), so whoever carries the bytes must say if they are all.
  result<void> finish();

  /// Status and fields are known. Informational responses are read and skipped.
  bool has_head() const { return part_ > part::fields; }
  /// All sections were read; only zero padding may follow.
  bool done() const { return part_ == part::padding; }
  uint32_t status() const;
  std::span<const bhttp_field> fields() const;    // once has_head()
  std::span<const bhttp_field> trailers() const;  // once done()

 private:
  enum class part : uint8_t {
    failed,
    framing,
    status,
    fields,
    content_length,
    content,
    trailers,
    padding
  };
  struct kept_section {
    explicit kept_section(std::pmr::memory_resource* memory) : lines(memory), fields(memory) {}
    std::pmr::vector<char> lines;  // not a string: short ones move with their object
    bhttp_fields fields;
  };

  result<void> read(std::string_view piece, std::pmr::string& content);
  void take_content(std::string_view& piece, std::pmr::string& content);
  result<size_t> read_item(std::string_view in);
  result<void> take_number(uint64_t number);
  result<size_t> read_section(std::string_view in);
  result<void> keep(std::string_view lines, std::string_view where, kept_section& section);
  error refuse(error why);

  part part_ = part::framing;
  bool known_length_ = false;
  uint32_t status_ = 0;
  uint32_t informational_ = 0;
  uint64_t content_bytes_max_;
  uint64_t content_bytes_ = 0;   // announced so far
  uint64_t content_left_ = 0;    // of the present chunk
  size_t seen_ = 0;              // of an unfinished section
  std::pmr::vector<char> held_;  // the beginning of an item whose end has not come yet
  kept_section head_, tail_;
};

}  // namespace lethe
