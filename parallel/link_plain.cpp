#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "parallel/link.hpp"

// On a protected link: the head, then the bytes as they are.

namespace lethe {
namespace {

iovec rest_of(std::byte* at, size_t bytes, size_t done) { return {at + done, bytes - done}; }

}  // namespace

bool link::push_plain() {
  bool moved = false;
  while (!out_.empty() && end_ == ending::none) {
    const piece p = out_.front();
    if (out_done_ == 0) out_head_ = {out_number_, p.slot, p.bytes, p.what};
    size_t in_head = std::min(out_done_, sizeof(head));
    iovec parts[] = {rest_of(reinterpret_cast<std::byte*>(&out_head_), sizeof(head), in_head),
                     rest_of(p.at, p.bytes, out_done_ - in_head)};
    size_t n = write_some(parts);
    if (n == 0) return moved;
    moved = true;
    out_done_ += n;
    if (out_done_ < sizeof(head) + p.bytes) continue;
    out_.pop();
    out_done_ = 0;
    ++out_number_;
  }
  return moved;
}

bool link::pull_plain() {
  bool moved = false;
  while (end_ == ending::none && !parked_) {
    if (in_done_ < sizeof(head)) {
      if (!read_head()) return moved;
    } else if (!in_body_) {
      look_at_head();
    } else if (!read_body()) {
      return moved;
    }
    moved = true;
    if (in_done_ == 0 && !wanted()) return true;
  }
  return moved;
}

/// And of the bytes what is there already, to where they most likely belong: one call to the
/// system for a whole frame.
bool link::read_head() {
  iovec parts[] = {rest_of(reinterpret_cast<std::byte*>(&in_head_), sizeof(head), in_done_), {}};
  if (!in_.empty()) parts[1] = {in_.front().at, in_.front().bytes};
  size_t n = read_some(parts);
  in_done_ += n;
  return n != 0;
}

void link::look_at_head() {
  verdict v = judge(in_head_);
  if (v == verdict::mine) {
    in_body_ = true;
    if (!fits(in_head_)) fail_with(ending::differing);
  }
  if (v != verdict::consumed) return finish_body();
  hear(in_head_);
  // What was taken for this frame's bytes is the beginning of the next one.
  size_t more = in_done_ - sizeof(head), in_head = std::min(more, sizeof(head));
  if (more != 0) {
    std::byte* at = in_.front().at;
    std::memcpy(&in_head_, at, in_head);
    std::memmove(at, at + in_head, more - in_head);
  }
  in_done_ = more;
}

bool link::read_body() {
  piece& p = in_.front();
  iovec rest = rest_of(p.at, p.bytes, in_done_ - sizeof(head));
  size_t n = read_some({&rest, 1});
  in_done_ += n;
  finish_body();
  return n != 0;
}

void link::finish_body() {
  if (!in_body_ || end_ != ending::none || in_done_ < sizeof(head) + in_.front().bytes) return;
  in_.pop();
  in_done_ = 0;
  in_body_ = false;
  ++in_number_;
}

}  // namespace lethe
