#include "runtime/crypto/chunk_frames.hpp"

#include "runtime/base/varint.hpp"

namespace lethe {

namespace {

result<size_t> chunk_bytes(bytes_view length) {
  uint64_t bytes = varint_value(length);
  if (bytes > chunk_sealed_bytes_max)
    return fail("sealed stream: a chunk of {} bytes; {} are accepted", bytes,
                chunk_sealed_bytes_max);
  if (bytes != 0 && bytes <= aead_tag_bytes)
    return fail("sealed stream: a chunk of {} bytes holds nothing; only the final one may be empty",
                bytes);
  return size_t(bytes);
}

}  // namespace

/// Fills `held_` up to `bytes`; false when `content` does not reach.
bool chunk_frames::take_until(size_t bytes, bytes_view& content) {
  if (held_.size() >= bytes) return true;
  size_t taken = std::min(bytes - held_.size(), content.size());
  held_.insert(held_.end(), content.begin(), content.begin() + ptrdiff_t(taken));
  content = content.subspan(taken);
  return held_.size() == bytes;
}

result<bytes_view> chunk_frames::next(bytes_view& content) {
  if (handed_out_) held_.clear();
  handed_out_ = false;
  if (!final_ && held_.empty() && !content.empty()) {
    // Most frames arrive whole, and are opened where they lie.
    size_t head = varint_bytes_told(content[0]);
    if (content.size() >= head) {
      auto bytes = chunk_bytes(content.first(head));
      if (!bytes) return bytes.why();
      if (*bytes != 0 && content.size() - head >= *bytes) {
        bytes_view chunk = content.subspan(head, *bytes);
        content = content.subspan(head + *bytes);
        return chunk;
      }
    }
  }
  return next_in(content);
}

/// The same by way of `held_`.
result<bytes_view> chunk_frames::next_in(bytes_view& content) {
  if (!final_) {
    if (!take_until(1, content)) return bytes_view{};
    size_t head = varint_bytes_told(held_[0]);
    if (!take_until(head, content)) return bytes_view{};
    auto bytes = chunk_bytes(bytes_view(held_).first(head));
    if (!bytes) return bytes.why();
    if (*bytes != 0) {
      if (!take_until(head + *bytes, content)) return bytes_view{};
      handed_out_ = true;
      return bytes_view(held_).subspan(head);
    }
    held_.clear();
    final_ = true;
  }
  if (held_.size() + content.size() > chunk_sealed_bytes_max)
    return fail("sealed stream: a final chunk of more than {} bytes", chunk_sealed_bytes_max);
  take_until(held_.size() + content.size(), content);
  return bytes_view{};
}

result<bytes_view> chunk_frames::finish() {
  if (!final_ || held_.size() < aead_tag_bytes)
    return fail("sealed stream: it ended before its final chunk; what it started must be undone");
  return bytes_view(held_);
}

}  // namespace lethe
