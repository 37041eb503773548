#include "parallel/link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "parallel/link_seal.hpp"

namespace lethe {

link::link(owned_fd fd, std::optional<keys> sealed) : fd_(std::move(fd)) {
  if (sealed) seal_ = std::make_unique<seal>(*std::move(sealed));
}
link::link(link&&) noexcept = default;
link::~link() = default;

void link::send(uint64_t slot, bytes_view data) {
  out_.push({kind::data, slot, const_cast<std::byte*>(data.data()), data.size()});
}

void link::receive(uint64_t slot, std::span<std::byte> to) {
  in_.push({kind::data, slot, to.data(), to.size()});
  parked_ = false;
}

void link::acknowledge() { out_.push({kind::acknowledgement, 0, nullptr, 0}); }

bool link::push() {
  if (out_.empty() || end_ != ending::none) return false;
  return seal_ ? push_sealed() : push_plain();
}

bool link::pull() {
  if (!wanted() || end_ != ending::none) return false;
  return seal_ ? pull_sealed() : pull_plain();
}

void link::listen() {
  if (end_ != ending::none) return;
  seal_ ? pull_sealed() : pull_plain();
  hung_up_ = true;
}

short link::events() const {
  short in = POLLIN, out = out_.empty() ? 0 : POLLOUT, gone = hung_up_ ? 0 : POLLRDHUP;
  bool reads = wanted() && !parked_;
  return short((reads ? in : gone) | out);
}

void link::close(last_word word) {
  bool whole = seal_ ? seal_->out_begin == seal_->out_end && out_done_ == 0 : out_done_ == 0;
  out_.clear();
  if (whole && !heard_ && end_ != ending::closed) {
    out_.push({kind::last, word.packed(), nullptr, 0});
    seal_ ? push_sealed() : push_plain();
    out_.clear();
  }
  shutdown(fd_.get(), SHUT_WR);
}

/// What a frame is for, by its head. Nothing is believed of a sealed one that was not opened.
link::verdict link::judge(const head& h) {
  if (h.number != in_number_) return fail_with(ending::out_of_order), verdict::bad;
  if (h.what == kind::data) {
    if (!in_.empty()) return verdict::mine;
    parked_ = true;
    return verdict::nobodys;
  }
  if (h.bytes != 0 || h.what > kind::last) return fail_with(ending::changed), verdict::bad;
  return verdict::consumed;
}

bool link::fits(const head& h) {
  const piece& p = in_.front();
  return h.slot == p.slot && h.bytes == p.bytes;
}

/// A frame without bytes: an acknowledgement, or the last word.
void link::hear(const head& h) {
  ++in_number_;
  if (h.what == kind::acknowledgement) {
    if (acks_due_ == 0) return void(fail_with(ending::differing));
    --acks_due_;
    return;
  }
  heard_ = last_word::unpack(h.slot);
  fail_with(ending::closed);
}

size_t link::write_some(std::span<const iovec> parts) {
  msghdr m{};
  m.msg_iov = const_cast<iovec*>(parts.data());
  m.msg_iovlen = parts.size();
  ssize_t n = sendmsg(fd_.get(), &m, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0) return size_t(n);
  if (errno == EAGAIN || errno == EINTR) return 0;
  // The other rank may have said why before it went.
  seal_ ? pull_sealed() : pull_plain();
  if (end_ == ending::none) fail_with(ending::closed);
  return 0;
}

size_t link::read_some(std::span<const iovec> parts) {
  msghdr m{};
  m.msg_iov = const_cast<iovec*>(parts.data());
  m.msg_iovlen = parts.size();
  ssize_t n = recvmsg(fd_.get(), &m, MSG_DONTWAIT);
  if (n > 0) return size_t(n);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  // A rank may leave when all has been said; who still waits for it then will ask again.
  hung_up_ = true;
  if (wanted()) fail_with(ending::closed);
  return 0;
}

}  // namespace lethe
