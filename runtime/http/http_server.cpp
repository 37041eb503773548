#include "runtime/http/http_server.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "runtime/http/http_loop.hpp"

namespace lethe {
namespace {

constexpr size_t head_bytes_min = 1024;

result<void> check_limits(const http_limits& l) {
  if (l.head_bytes_max < head_bytes_min)
    return fail("http: head_bytes_max is {}; {} at least", l.head_bytes_max, head_bytes_min);
  if (l.bodies_bytes_max < l.body_bytes_max)
    return fail("http: bodies_bytes_max is {}; one body may have {}", l.bodies_bytes_max,
                l.body_bytes_max);
  if (l.connections_max == 0) return fail("http: connections_max is 0; 1 at least");
  if (l.handshake_ms == 0 || l.idle_ms == 0 || l.request_ms == 0 || l.send_ms == 0 ||
      l.linger_ms == 0)
    return fail("http: a time limit is 0 ms; 1 at least");
  if (l.body_bytes_max > arena_reserve_max / 2 || l.arena_bytes_more > arena_reserve_max / 4)
    return fail("http: a request of {} and {} bytes is more than an arena holds ({})",
                l.body_bytes_max, l.arena_bytes_more, arena_reserve_max);
  return {};
}

}  // namespace

http_server::http_server(std::unique_ptr<http_loop> loop) : loop_(std::move(loop)) {}
http_server::~http_server() = default;

result<std::unique_ptr<http_server>> http_server::start(std::span<const http_listener> where,
                                                        const http_limits& limits,
                                                        http_handler& handler) {
  if (where.empty()) return fail("http: no address to listen on; name one, like 127.0.0.1:8080");
  if (auto sound = check_limits(limits); !sound) return sound.why();
  std::vector<listen_socket> sockets;
  std::vector<http_listener> bound;
  for (const auto& w : where) {
    auto s = listen_socket::open(w.address);
    if (!s) return fail("{} ({})", s.why().text, w.role);
    bound.push_back({w.role, s->bound(), w.tls, w.body_window});
    sockets.push_back(*std::move(s));
  }
  int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return fail("http: cannot make an eventfd: {}", std::strerror(errno));
  auto loop =
      std::make_unique<http_loop>(std::move(sockets), std::move(bound), wake_fd, limits, handler);
  std::unique_ptr<http_server> server(new http_server(std::move(loop)));
  if (auto started = server->loop_->start(*server); !started) return started.why();
  return server;
}

const std::vector<http_listener>& http_server::bound() const { return loop_->bound; }

void http_server::took(uint64_t id, size_t bytes) {
  loop_->letters.put(http_letter{id, http_letter::took{bytes}});
}

void http_server::begin(uint64_t id, http_answer head) {
  loop_->letters.put(http_letter{id, http_letter::begin{std::move(head)}});
}

void http_server::write(uint64_t id, std::string_view piece) {
  loop_->letters.put(http_letter{id, http_letter::piece{http_block::piece(piece)}});
}

void http_server::end(uint64_t id) { loop_->letters.put(http_letter{id, http_letter::end{}}); }

void http_server::cut(uint64_t id) { loop_->letters.put(http_letter{id, http_letter::cut{}}); }

void http_server::answer(uint64_t id, http_answer head, std::string_view body) {
  head.content_length = body.size();
  loop_->letters.put(http_letter{id, http_letter::begin{std::move(head)}},
                     http_letter{id, http_letter::piece{http_block::piece(body)}},
                     http_letter{id, http_letter::end{}});
}

void http_server::stop_accepting() { loop_->letters.put(http_letter{.what = http_letter::stop{}}); }

http_numbers http_server::numbers() const {
  return {.connections = loop_->connections.load(std::memory_order_relaxed),
          .accepted = loop_->accepted.load(std::memory_order_relaxed),
          .requests = loop_->requests.load(std::memory_order_relaxed),
          .refused = loop_->refused.load(std::memory_order_relaxed),
          .wakeups = loop_->letters.wakeups()};
}

}  // namespace lethe
