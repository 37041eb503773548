#include "parallel/link_door.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lethe {
namespace {

using clock = std::chrono::steady_clock;

/// Milliseconds for poll, rounded up.
int left_ms(deadline until) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
  return int(std::clamp<int64_t>(left, 0, 3'600'000));
}

bool wait_for(int fd, short events, deadline until) {
  pollfd p{fd, events, 0};
  return poll(&p, 1, left_ms(until)) > 0;
}

/// False: gone, or too late.
bool read_all(int fd, std::span<std::byte> to, deadline until) {
  while (!to.empty()) {
    ssize_t n = recv(fd, to.data(), to.size(), MSG_DONTWAIT);
    if (n > 0) to = to.subspan(size_t(n));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (n < 0 && !wait_for(fd, POLLIN, until)) return false;
  }
  return true;
}

/// What a connection that says nothing else has room for.
bool write_all(int fd, bytes_view data) {
  return ::send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(data.size());
}

/// `first` called. Ours is one of the two.
link make_link(const mesh& m, owned_fd fd, const hello& first, const hello& second, bool called) {
  keep_alive(fd.get(), m.patience());
  if (m.terms().protected_link) return link(std::move(fd), {});
  auto key = [&](direction way) { return derive_key(m.terms(), way, first, second); };
  direction out = called ? direction::to_listener : direction::to_caller;
  direction in = called ? direction::to_caller : direction::to_listener;
  return link(std::move(fd), link::keys{key(out), key(in)});
}

result<owned_fd> connect_to(const link_address& at, deadline until) {
  const sockaddr* a = at.get();
  owned_fd fd(socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int why = 0;
  socklen_t size = sizeof why;
  if (connect(fd.get(), a, sizeof(sockaddr_in6)) == 0) return fd;
  if (errno == EINPROGRESS && wait_for(fd.get(), POLLOUT, until) &&
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &why, &size) == 0 && why == 0)
    return fd;
  return fail("{}", std::strerror(why != 0 ? why : errno == EINPROGRESS ? ETIMEDOUT : errno));
}

}  // namespace

result<std::unique_ptr<link_door>> link_door::open(link_address at) {
  auto listener = listen_at(at);
  if (!listener) return listener.why();
  return std::unique_ptr<link_door>(new link_door(*std::move(listener), at));
}

result<void> link_door::call(mesh& into, uint32_t rank, lane on, const link_address& at,
                             deadline until) {
  const group_terms& terms = into.terms();
  auto cannot = [&](const std::string& why) {
    return fail("communicator: rank {} cannot join rank {} at {}: {}", terms.rank, rank, at.text(),
                why);
  };
  auto fd = connect_to(at, until);
  if (!fd) return cannot(fd.why().text + "; see whether it runs and is reached");
  const hello ours = say_hello(terms, rank, on);
  hello theirs;
  proof given;
  if (!write_all(fd->get(), ours) || !read_all(fd->get(), theirs, until))
    return cannot("it said no hello; see what it says");
  if (auto who = read_hello(terms, theirs); !who) return cannot("there is " + who.why().text);
  if (!read_all(fd->get(), given, until) ||
      !proves(terms, direction::to_caller, ours, theirs, given))
    return cannot("its proof is wrong; see that both were given the same epoch's secret");
  if (!write_all(fd->get(), prove(terms, direction::to_listener, ours, theirs)))
    return cannot("it is gone; see what it says");
  into.add(rank, on, make_link(into, *std::move(fd), ours, theirs, true));
  return {};
}

result<void> link_door::await(mesh& into, uint32_t rank, lane on, deadline until) {
  while (!into.has(rank, on)) {
    if (clock::now() >= until)
      return fail("communicator: rank {} did not come to rank {} in time; {}", rank, into.rank(),
                  refused_.empty() ? "see whether it was started"
                                   : "refused was " + refused_ + "; see who that is");
    let_in(into, until);
  }
  return {};
}

void link_door::let_in(mesh& into, deadline until) {
  std::vector<pollfd> all{{listener_.get(), POLLIN, 0}};
  for (const visitor& v : visitors_) all.push_back({v.fd.get(), POLLIN, 0});
  if (poll(all.data(), all.size(), left_ms(until)) <= 0) return;
  for (size_t i = visitors_.size(); i-- > 0;)
    if (all[i + 1].revents != 0 && !hear(into, visitors_[i]))
      visitors_.erase(visitors_.begin() + ptrdiff_t(i));
  if (all[0].revents == 0) return;
  // Whoever says nothing must not keep others out.
  if (visitors_.size() == visitors_max) visitors_.erase(visitors_.begin());
  owned_fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.get() >= 0) visitors_.emplace_back(std::move(fd));
}

/// False: it is in, or sent away.
bool link_door::hear(mesh& into, visitor& v) {
  bool answered = v.got >= hello_bytes;
  std::span<std::byte> rest = answered ? std::span(v.given).subspan(v.got - hello_bytes)
                                       : std::span(v.theirs).subspan(v.got);
  ssize_t n = recv(v.fd.get(), rest.data(), rest.size(), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0)
    return refuse(answered ? fail("rank {}, who left without a proof: it may have been given "
                                  "another epoch's secret",
                                  v.who.rank)
                           : fail("a stranger, who said no hello"));
  v.got += size_t(n);
  if (v.got == hello_bytes) return answer(into, v);
  if (v.got == hello_bytes + proof_bytes) return admit(into, v);
  return true;
}

bool link_door::refuse(error why) {
  refused_ = std::move(why.text);
  return false;
}

bool link_door::answer(mesh& into, visitor& v) {
  const group_terms& terms = into.terms();
  auto who = read_hello(terms, v.theirs);
  // Whoever knows how to say hello hears what is wrong with it.
  v.ours = say_hello(terms, who ? who->rank : terms.rank, who ? who->on : lane::calls);
  if (!who) {
    write_all(v.fd.get(), v.ours);
    return refuse(who.why());
  }
  v.who = *who;
  proof mine = prove(terms, direction::to_caller, v.theirs, v.ours);
  return write_all(v.fd.get(), v.ours) && write_all(v.fd.get(), mine);
}

bool link_door::admit(mesh& into, visitor& v) {
  if (!proves(into.terms(), direction::to_listener, v.theirs, v.ours, v.given))
    return refuse(fail("rank {}, whose proof is wrong: another secret, or a hello of another time",
                       v.who.rank));
  if (into.has(v.who.rank, v.who.on))
    return refuse(fail("rank {}, who is here already", v.who.rank));
  into.add(v.who.rank, v.who.on, make_link(into, std::move(v.fd), v.theirs, v.ours, false));
  return false;
}

}  // namespace lethe
