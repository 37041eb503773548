#pragma once

#include <array>
#include <memory>
#include <optional>

#include "parallel/last_word.hpp"
#include "parallel/link_hello.hpp"
#include "runtime/base/owned_fd.hpp"
#include "runtime/crypto/aead.hpp"

struct iovec;

namespace lethe {

/// One connection to another rank. Sends and receives what was posted, in order, as far as the
/// socket goes without waiting. Frames are sealed; on a protected link they go from where they lie
/// to where they belong, with no copy of ours on the way.
class link {
 public:
  struct keys {
    link_key out, in;
  };
  link(owned_fd fd, std::optional<keys> sealed);
  link(link&&) noexcept;
  ~link();

  /// What is posted stays where it is until it was sent.
  void send(uint64_t slot, bytes_view data);
  void receive(uint64_t slot, std::span<std::byte> to);
  /// Tells the other side that a message of its was taken.
  void acknowledge();
  void expect_acknowledgement() { ++acks_due_; }

  bool sent() const { return out_.empty(); }
  bool received() const { return in_.empty(); }
  bool acknowledged() const { return acks_due_ == 0; }
  /// As far as it goes. True: something moved.
  bool push();
  bool pull();
  /// Looks for a last word where nothing is expected.
  void listen();

  /// What this connection has come to, and what the other rank said last.
  ending end() const { return end_; }
  const std::optional<last_word>& heard() const { return heard_; }
  /// Says a last word, unless a frame is half sent. Nothing is sent afterwards.
  void close(last_word word);

  int fd() const { return fd_.get(); }
  /// What to poll for.
  short events() const;

 private:
  enum class kind : uint64_t { data, acknowledgement, last };
  /// What goes before the bytes of a frame, sealed or not; authenticated in either direction.
  struct head {
    uint64_t number, slot, bytes;
    kind what;
    bytes_view view() const { return std::as_bytes(std::span(this, 1)); }
  };
  struct piece {
    kind what;
    uint64_t slot;
    std::byte* at;
    size_t bytes;
  };
  /// Pieces in order, without allocating.
  class queue {
   public:
    bool empty() const { return first_ == end_; }
    void push(const piece& p) {
      check(end_ - first_ < pieces_.size());
      pieces_[end_++ % pieces_.size()] = p;
    }
    piece& front() { return pieces_[first_ % pieces_.size()]; }
    void pop() { ++first_; }
    void clear() { first_ = end_; }

   private:
    std::array<piece, 64> pieces_;
    uint32_t first_ = 0, end_ = 0;
  };
  struct seal;
  enum class verdict : uint8_t { mine, consumed, nobodys, bad };

  verdict judge(const head& h);
  void hear(const head& h);
  size_t write_some(std::span<const iovec> parts);
  size_t read_some(std::span<const iovec> parts);
  bool fits(const head& h);
  bool wanted() const { return !in_.empty() || acks_due_ != 0; }
  bool fail_with(ending why) { return end_ = why, false; }

  // link_plain.cpp
  bool push_plain();
  bool pull_plain();
  bool read_head();
  void look_at_head();
  bool read_body();
  void finish_body();
  // link_sealed.cpp
  bool push_sealed();
  bool pull_sealed();
  void seal_next();
  bool open_next();
  bool open_first();
  bool open_chunk(bytes_view aad, size_t bytes, std::byte* to);
  void finish_sealed();
  bool read_sealed();

  owned_fd fd_;
  std::unique_ptr<seal> seal_;
  queue out_, in_;
  uint32_t acks_due_ = 0;
  head out_head_{}, in_head_{};
  uint64_t out_number_ = 0, in_number_ = 0;
  size_t out_done_ = 0, in_done_ = 0;  // bytes of the frame under way
  bool in_body_ = false;               // its head is good
  bool parked_ = false;                // it waits for somebody to receive it
  bool hung_up_ = false;
  ending end_ = ending::none;
  std::optional<last_word> heard_;
};

}  // namespace lethe
