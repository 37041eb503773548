#pragma once

#include "runtime/bhttp/fields.hpp"

namespace lethe {

/// Writes a response in indeterminate-length form as it comes to be: a head, content in any number
/// of pieces, an end. Each call appends; after the end, zero bytes may follow as padding.
class bhttp_response_writer {
 public:
  /// A final status, 200 to 599. A refused head leaves `out` as it was.
  result<void> head(uint32_t status, std::span<const bhttp_field> fields, std::pmr::string& out);
  /// An empty piece adds nothing.
  void content(std::string_view piece, std::pmr::string& out);
  void end(std::pmr::string& out);

 private:
  enum class part : uint8_t { head, content, ended } part_ = part::head;
};

}  // namespace lethe
