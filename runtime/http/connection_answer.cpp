#include <algorithm>

#include "runtime/http/connection.hpp"
#include "runtime/http/quiet_kj.hpp"

namespace lethe {
namespace {

// Of one write: what `send_ms` is measured on, and how far credit lags behind.
constexpr size_t write_bytes_max = size_t{64} << 10;
constexpr size_t write_slices_max = 64;

}  // namespace

void connection::begin(const http_answer& answer) {
  if (begun_) return close_now();
  begun_ = true;
  frame_ = frame_of(answer, old_client_);
  keep_alive_ = keep_alive_ && !s_.draining && frame_ != body_frame::until_close &&
                stage_ != stage::body;  // the rest of which nobody wants
  length_left_ = answer.content_length.value_or(0);
  auto head = write_answer_head(answer, frame_, !keep_alive_);
  if (!head) return close_now();
  queue_.push_back(http_block::frame(*head));
}

void connection::write(http_block piece) {
  if (ended_ || piece.credit() == 0 || dead()) return;
  if (!begun_) return close_now();
  if (frame_ == body_frame::length) {
    if (piece.credit() > length_left_) return close_now();
    length_left_ -= piece.credit();
  }
  if (head_only_ || frame_ == body_frame::none) return s_.handler.drained(id_, piece.credit());
  if (queued_ > 0 &&
      piece.credit() > s_.limits.queued_bytes_max - std::min(queued_, s_.limits.queued_bytes_max))
    return close_now();
  queued_ += piece.credit();
  if (frame_ == body_frame::chunks) piece.make_chunk();
  queue_.push_back(std::move(piece));
}

void connection::end() {
  if (ended_ || dead()) return;
  bool short_of = frame_ == body_frame::length && length_left_ > 0 && !head_only_;
  if (!begun_ || short_of) return close_now();
  ended_ = true;
  if (frame_ == body_frame::chunks && !head_only_) queue_.push_back(http_block::frame("0\r\n\r\n"));
}

void connection::refuse(int status) {
  if (begun_) return close_now();
  if (auto id = std::exchange(id_, 0)) {
    s_.answering.erase(id);
    s_.handler.left(id);
  }
  ++s_.refused;
  bool answering_head = stage_ == stage::body && head_only_;
  stage_ = stage::closing;
  deadline_ = after(s_.limits.linger_ms);
  wipe_input();
  keep_alive_ = false;
  begun_ = ended_ = true;
  queue_.push_back(http_block::frame(write_refusal(status, !answering_head)));
  flush();
}

void connection::flush() {
  if (writing_ || dead()) return;
  if (queue_.empty()) {
    if (ended_) answered();  // its end came after its last byte was out
    return;
  }
  slices_.clear();
  size_t room = write_bytes_max, whole = 0;
  for (auto& block : queue_) {
    if (room == 0 || slices_.size() == write_slices_max) break;
    auto bytes = block.bytes();
    if (slices_.empty()) bytes.remove_prefix(first_sent_);
    auto slice = bytes.substr(0, room);
    room -= slice.size();
    slices_.add(reinterpret_cast<const kj::byte*>(slice.data()), slice.size());
    if (slice.size() < bytes.size()) {
      first_sent_ = slices_.size() == 1 ? first_sent_ + slice.size() : slice.size();
      break;
    }
    first_sent_ = 0;
    ++whole;
  }
  writing_ = true;
  send_deadline_ = after(s_.limits.send_ms);
  // KJ also throws at once, from within the call, and whoever delivers letters must not hear of it.
  auto written = kj::evalNow([this] { return stream_->write(slices_.asPtr()); });
  tasks_.add(written.then([this, whole] { wrote(whole); }));
}

void connection::wrote(size_t blocks) {
  writing_ = false;
  if (dead()) return;
  size_t credit = 0;
  for (; blocks > 0; --blocks) {
    credit += queue_.front().credit();
    queue_.pop_front();
  }
  queued_ -= credit;
  if (credit > 0 && id_ != 0) s_.handler.drained(id_, credit);
  flush();
}

void connection::answered() {
  begun_ = ended_ = false;
  if (auto id = std::exchange(id_, 0)) {
    s_.answering.erase(id);
    s_.handler.sent(id);
  }
  if (!keep_alive_ || s_.draining) return linger();
  stage_ = stage::head;
  deadline_ = after(s_.limits.idle_ms);
  advance();
  read_on();
}

/// The client gets the end of our side, and time to take it: closing on what it still sends would
/// reset the connection and could take the answer away from it.
void connection::linger() {
  stage_ = stage::closing;
  deadline_ = after(s_.limits.linger_ms);
  wipe_input();
  quietly([this] { stream_->shutdownWrite(); }) ? read_on() : close_now();
}

}  // namespace lethe
