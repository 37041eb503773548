#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/bhttp/fields.hpp"

namespace lethe {

struct bhttp_request {
  std::string_view method = "POST", scheme = "https", authority, path;
  std::span<const bhttp_field> fields;
  std::string_view content;
};

/// Appends the request in known-length form, every section written out, so zero bytes may follow as
/// padding. What read_request would refuse is refused, and `out` stays as it was.
result<void> write_request(const bhttp_request& request, std::pmr::string& out);

/// A request that was read: views of the message, which outlives it.
struct bhttp_request_view {
  explicit bhttp_request_view(std::pmr::memory_resource* memory)
      : fields(memory), trailers(memory), joined(memory) {}

  std::string_view content() const {
    return joined.empty() ? in_place : std::string_view(joined.data(), joined.size());
  }

  std::string_view method, scheme, authority, path;
  bhttp_fields fields, trailers;
  std::string_view in_place;      // content that the message holds in one piece
  std::pmr::vector<char> joined;  // content that came in several
};

/// Reads a message/bhttp request of either form (RFC 9292), sections left out at the end and zero
/// padding included. Served are paths only: no CONNECT.
result<bhttp_request_view> read_request(
    std::string_view whole, std::pmr::memory_resource* memory,
    uint64_t content_bytes_max = limits::bhttp_content_bytes_max);

}  // namespace lethe
