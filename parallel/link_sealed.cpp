#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "parallel/link_seal.hpp"

// Chunk after chunk: the first is the head, then bytes sealed with it as associated data; further
// ones are sealed bytes alone. Nonces count chunks in each direction, so none can be left out,
// repeated or moved.

namespace lethe {

bool link::push_sealed() {
  bool moved = false;
  seal& s = *seal_;
  while (end_ == ending::none) {
    if (s.out_begin == s.out_end) {
      if (out_.empty()) return moved;
      seal_next();
    }
    iovec rest{s.out.get() + s.out_begin, s.out_end - s.out_begin};
    size_t n = write_some({&rest, 1});
    if (n == 0) return moved;
    moved = true;
    s.out_begin += n;
    if (s.out_begin != s.out_end || out_done_ < out_.front().bytes) continue;
    out_.pop();
    out_done_ = 0;
  }
  return moved;
}

void link::seal_next() {
  seal& s = *seal_;
  const piece& p = out_.front();
  bool first = out_done_ == 0;
  head h{s.out_nonce.next, p.slot, p.bytes, p.what};
  bytes_view aad = first ? h.view() : bytes_view();
  bytes_view part(p.at + out_done_, std::min(seal::chunk_bytes, p.bytes - out_done_));
  std::ranges::copy(aad, s.out.get());
  s.sealing.seal(s.out_nonce.current(), aad, {part}, s.out.get() + aad.size());
  ++s.out_nonce.next;
  out_done_ += part.size();
  s.out_begin = 0;
  s.out_end = aad.size() + part.size() + aead_tag_bytes;
}

bool link::pull_sealed() {
  bool moved = false;
  while (end_ == ending::none) {
    if (open_next()) {
      moved = true;
    } else if (end_ != ending::none || !read_sealed()) {
      return moved;
    }
  }
  return moved;
}

/// One chunk, if it is there and somebody wants it.
bool link::open_next() {
  if (!in_body_) return open_first();
  const piece& p = in_.front();
  size_t bytes = std::min(seal::chunk_bytes, p.bytes - in_done_);
  if (!open_chunk({}, bytes, p.at + in_done_)) return false;
  in_done_ += bytes;
  finish_sealed();
  return true;
}

bool link::open_first() {
  seal& s = *seal_;
  if (s.in_end - s.in_begin < sizeof(head)) return false;
  head h;
  std::memcpy(&h, s.in.get() + s.in_begin, sizeof h);
  in_number_ = s.in_nonce.next;
  verdict v = judge(h);
  if (v != verdict::mine && v != verdict::consumed) return false;
  size_t bytes = std::min<size_t>(seal::chunk_bytes, h.bytes);
  bool fitting = v == verdict::consumed || fits(h);
  // Where it fits nobody, it is opened only to know whether the other rank meant it.
  std::byte* to = fitting && bytes != 0 ? in_.front().at : s.in.get() + s.in_begin + sizeof(head);
  if (!open_chunk(h.view(), bytes, to)) return false;
  if (v == verdict::consumed) return hear(h), true;
  if (!fitting) {
    wipe(to, bytes);
    return fail_with(ending::differing);
  }
  in_body_ = true;
  in_done_ = bytes;
  finish_sealed();
  return true;
}

bool link::open_chunk(bytes_view aad, size_t bytes, std::byte* to) {
  seal& s = *seal_;
  size_t sealed = bytes + aead_tag_bytes;
  if (s.in_end - s.in_begin < aad.size() + sealed) return false;
  bytes_view chunk(s.in.get() + s.in_begin + aad.size(), sealed);
  if (!s.opening.open(s.in_nonce.current(), aad, chunk, to)) return fail_with(ending::changed);
  ++s.in_nonce.next;
  s.in_begin += aad.size() + sealed;
  return true;
}

void link::finish_sealed() {
  if (in_done_ < in_.front().bytes) return;
  in_.pop();
  in_body_ = false;
  in_done_ = 0;
}

/// As much as there is room for; whatever comes is sealed and may wait here.
bool link::read_sealed() {
  seal& s = *seal_;
  if (s.in_begin == s.in_end) s.in_begin = s.in_end = 0;
  if (s.in_begin >= seal::chunk_bytes_sealed) {
    std::memmove(s.in.get(), s.in.get() + s.in_begin, s.in_end - s.in_begin);
    s.in_end -= std::exchange(s.in_begin, 0);
  }
  iovec room{s.in.get() + s.in_end, seal::in_bytes - s.in_end};
  bool enough = s.in_end - s.in_begin >= sizeof(head) + aead_tag_bytes;
  if (room.iov_len == 0 || (!wanted() && enough)) return false;
  size_t n = read_some({&room, 1});
  s.in_end += n;
  return n != 0;
}

}  // namespace lethe
