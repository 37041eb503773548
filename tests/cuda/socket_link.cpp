#include "tests/cuda/socket_link.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace lethe::emulated {
namespace {

constexpr int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

/// Room for two descriptors beside a packet.
struct message {
  explicit message(packet& p) : part{&p, sizeof p} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
  }
  void make_room() {
    header.msg_control = room;
    header.msg_controllen = sizeof room;
  }
  iovec part;
  alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))]{};
  msghdr header{};
};

void attach(message& m, std::span<const int> with) {
  m.make_room();
  cmsghdr* c = CMSG_FIRSTHDR(&m.header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(with.size_bytes());
  std::memcpy(CMSG_DATA(c), with.data(), with.size_bytes());
  m.header.msg_controllen = CMSG_SPACE(with.size_bytes());
}

void detach(message& m, std::array<owned_fd, 2>& into) {
  cmsghdr* c = CMSG_FIRSTHDR(&m.header);
  if (c == nullptr || c->cmsg_type != SCM_RIGHTS) return;
  for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; ++i) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
    into[i] = owned_fd(fd);
  }
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  path.copy(a.sun_path, sizeof a.sun_path - 1);
  return a;
}

}  // namespace

std::optional<std::array<rank_link, 2>> make_link() {
  int talk[2], data[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | flags, 0, talk) != 0) return {};
  std::array<rank_link, 2> ends{rank_link{owned_fd(talk[0]), owned_fd()},
                                rank_link{owned_fd(talk[1]), owned_fd()}};
  if (socketpair(AF_UNIX, SOCK_STREAM | flags, 0, data) != 0) return {};
  for (size_t i = 0; i < 2; ++i) ends[i].data = owned_fd(data[i]);
  return ends;
}

told tell(const owned_fd& talk, const packet& p, std::span<const int> with) {
  packet copy = p;
  message m(copy);
  if (!with.empty()) attach(m, with);
  if (sendmsg(talk.get(), &m.header, MSG_NOSIGNAL) == ssize_t(sizeof p)) return told::yes;
  return errno == EAGAIN ? told::no_room : told::gone;
}

heard hear(const owned_fd& talk) {
  heard h;
  packet p{};
  message m(p);
  m.make_room();
  ssize_t got = recvmsg(talk.get(), &m.header, MSG_CMSG_CLOEXEC);
  if (got > 0) detach(m, h.with);
  if (got == ssize_t(sizeof p))
    h.packet = p;
  else
    h.gone = got >= 0 || (errno != EAGAIN && errno != EINTR);
  return h;
}

owned_fd listen_on(const std::string& path, int most) {
  owned_fd fd(socket(AF_UNIX, SOCK_SEQPACKET | flags, 0));
  sockaddr_un at = address_of(path);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return owned_fd();
  return listen(fd.get(), most) == 0 ? std::move(fd) : owned_fd();
}

owned_fd call(const std::string& path) {
  owned_fd fd(socket(AF_UNIX, SOCK_SEQPACKET | flags, 0));
  sockaddr_un at = address_of(path);
  bool there = connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  return there ? std::move(fd) : owned_fd();
}

owned_fd let_in(const owned_fd& listener) {
  return owned_fd(accept4(listener.get(), nullptr, nullptr, flags));
}

}  // namespace lethe::emulated
