#include <cstddef>
#include <cstdint>

#include "runtime/bhttp/request.hpp"
#include "runtime/bhttp/response_reader.hpp"

namespace {

bool same(std::span<const lethe::bhttp_field> a, std::span<const lethe::bhttp_field> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].value != b[i].value) return false;
  return true;
}

/// A request that is read can be written, and read again.
void request(std::string_view whole) {
  std::pmr::monotonic_buffer_resource memory;
  auto first = lethe::read_request(whole, &memory);
  if (!first) return;
  std::pmr::string out(&memory);
  const auto& r = *first;
  if (!lethe::write_request({r.method, r.scheme, r.authority, r.path, r.fields, r.content()}, out))
    __builtin_trap();
  auto again = lethe::read_request(out, &memory);
  if (!again || again->path != r.path || again->content() != r.content() ||
      !same(again->fields, r.fields))
    __builtin_trap();
}

/// A response is the same, read at once or in pieces of any size.
void response(std::string_view whole, size_t step) {
  std::pmr::monotonic_buffer_resource memory;
  lethe::bhttp_response_reader once(&memory), pieces(&memory);
  std::pmr::string all(&memory), some(&memory);
  const bool fine = once.feed(whole, all) && once.finish();
  bool also = true;
  for (size_t at = 0; also && at < whole.size(); at += step)
    also = bool(pieces.feed(whole.substr(at, step), some));
  also = also && pieces.finish();
  if (fine != also) __builtin_trap();
  if (!fine) return;
  if (all != some || once.status() != pieces.status() || all.size() > whole.size() ||
      !same(once.fields(), pieces.fields()) || !same(once.trailers(), pieces.trailers()))
    __builtin_trap();
}

}  // namespace

/// A message of any bytes, as either kind.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view whole(reinterpret_cast<const char*>(data), size);
  request(whole);
  response(whole, 1 + size % 7);
  return 0;
}
