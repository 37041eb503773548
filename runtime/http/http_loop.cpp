#include "runtime/http/http_loop.hpp"

#include <kj/async-unix.h>

#include <algorithm>
#include <list>

#include "runtime/http/connection.hpp"
#include "runtime/http/http_tls.hpp"
#include "runtime/http/quiet_kj.hpp"

namespace lethe {
namespace {

constexpr uint32_t refusing_max = 64;  // connections beyond the limit that hear 503
constexpr auto accept_pause = 20 * kj::MILLISECONDS;

/// A fourth of the shortest time anyone is given, so that a time's end is seen in time.
kj::Duration tick_of(const http_limits& l) {
  auto shortest = std::min({l.handshake_ms, l.idle_ms, l.request_ms, l.send_ms, l.linger_ms});
  return std::clamp(shortest / 4, 5u, 250u) * kj::MILLISECONDS;
}

}  // namespace

/// By listener; null for those in the clear.
using tls_contexts = std::vector<kj::Own<kj::TlsContext>>;

/// All that lives on the server's thread.
class http_floor final : private kj::TaskSet::ErrorHandler {
 public:
  http_floor(http_loop& loop, http_server& server, kj::AsyncIoContext& io, tls_contexts tls)
      : loop_(loop),
        io_(io),
        tls_(kj::mv(tls)),
        shared_{.server = &server,
                .handler = loop.handler_,
                .limits = loop.limits_,
                .timer = io.provider->getTimer()},
        wake_(io.unixEventPort, loop.letters.fd(), kj::UnixEventPort::FdObserver::OBSERVE_READ),
        done_(kj::newPromiseAndFulfiller<void>()),
        tasks_(*this) {
    shared_.bury = [this] { bury_later(); };
    accepting_.emplace(static_cast<kj::TaskSet::ErrorHandler&>(*this));
    for (auto& s : loop_.sockets_) {
      constexpr uint flags = kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                             kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK;
      receivers_.push_back(io_.lowLevelProvider->wrapListenSocketFd(s.fd(), flags));
      accepting_->add(accept_on(*receivers_.back(), uint32_t(receivers_.size() - 1)));
    }
    tasks_.add(read_letters());
    tasks_.add(watch_clock());
  }

  void run() { done_.promise.wait(io_.waitScope); }

  ~http_floor() noexcept(false) {
    accepting_.reset();
    for (auto& c : connections_) c.close_now();
  }

 private:
  /// A server that no longer hears of answers, or of time, must not seem to work.
  void taskFailed(kj::Exception&& why) override { done_.fulfiller->reject(kj::mv(why)); }

  kj::Promise<void> accept_on(kj::ConnectionReceiver& from, uint32_t listener);
  kj::Promise<void> read_letters();
  kj::Promise<void> watch_clock();
  void welcome(kj::Own<kj::AsyncIoStream> stream, uint32_t listener);
  void shake_hands(kj::Own<kj::AsyncIoStream> stream, uint32_t listener);
  void deliver(http_letter& letter, std::vector<connection*>& touched);
  void stop_accepting();
  void bury_later();
  void publish();

  http_loop& loop_;
  kj::AsyncIoContext& io_;
  tls_contexts tls_;
  serving shared_;
  kj::UnixEventPort::FdObserver wake_;
  kj::PromiseFulfillerPair<void> done_;
  std::list<connection> connections_;
  std::vector<kj::Own<kj::ConnectionReceiver>> receivers_;
  std::optional<kj::TaskSet> accepting_;
  size_t shaking_ = 0;
  bool burying_ = false;
  bool late_ = false;
  kj::TaskSet tasks_;
};

kj::Promise<void> http_floor::accept_on(kj::ConnectionReceiver& from, uint32_t listener) {
  auto pause = [this, &from, listener] {
    return shared_.timer.afterDelay(accept_pause).then([this, &from, listener] {
      return accept_on(from, listener);
    });
  };
  if (connections_.size() + shaking_ >= shared_.limits.connections_max + refusing_max)
    return pause();
  // KJ also throws at once, from within the call.
  return kj::evalNow([&from] { return from.accept(); })
      .then(
          [this, &from, listener, pause](kj::Own<kj::AsyncIoStream> stream) {
            bool taken = quietly([&] {  // memory
              loop_.accepted.fetch_add(1, std::memory_order_relaxed);
              tls_[listener] ? shake_hands(kj::mv(stream), listener)
                             : welcome(kj::mv(stream), listener);
            });
            return taken ? accept_on(from, listener) : pause();
          },
          [pause](kj::Exception&&) { return pause(); });  // out of descriptors, say
}

void http_floor::welcome(kj::Own<kj::AsyncIoStream> stream, uint32_t listener) {
  auto& c = connections_.emplace_back(shared_, kj::mv(stream), listener,
                                      loop_.bound[listener].body_window);
  if (connections_.size() > shared_.limits.connections_max) c.refuse(503);
  c.serve();
  publish();
}

/// Whoever fails here, or takes too long, was never a client.
void http_floor::shake_hands(kj::Own<kj::AsyncIoStream> stream, uint32_t listener) {
  ++shaking_;
  auto done = kj::evalNow([&] { return tls_[listener]->wrapServer(kj::mv(stream)); });
  tasks_.add(done.then(
      [this, listener](kj::Own<kj::AsyncIoStream>&& secured) {
        --shaking_;
        if (shared_.draining) return;
        quietly([&] { welcome(kj::mv(secured), listener); });  // or no memory for this one
      },
      [this](kj::Exception&&) { --shaking_; }));
}

kj::Promise<void> http_floor::read_letters() {
  // Asked for first: an edge between taking the letters and asking would be lost.
  auto next = wake_.whenBecomesReadable();
  std::vector<connection*> touched;
  for (auto& letter : loop_.letters.take()) deliver(letter, touched);
  for (auto* c : touched) c->flush();  // one write for all that came together
  publish();
  return next.then([this] { return read_letters(); });
}

void http_floor::deliver(http_letter& letter, std::vector<connection*>& touched) {
  if (std::holds_alternative<http_letter::quit>(letter.what)) return done_.fulfiller->fulfill();
  if (std::holds_alternative<http_letter::stop>(letter.what)) return stop_accepting();
  auto found = shared_.answering.find(letter.id);
  if (found == shared_.answering.end()) return;  // it has left
  auto& c = *found->second;
  if (auto* begin = std::get_if<http_letter::begin>(&letter.what)) {
    c.begin(begin->answer);
  } else if (auto* piece = std::get_if<http_letter::piece>(&letter.what)) {
    c.write(std::move(piece->block));
  } else if (auto* took = std::get_if<http_letter::took>(&letter.what)) {
    c.took_of_body(took->bytes);
  } else if (std::holds_alternative<http_letter::cut>(letter.what)) {
    c.close_now();
  } else {
    c.end();
  }
  if (touched.empty() || touched.back() != &c) touched.push_back(&c);
}

void http_floor::stop_accepting() {
  shared_.draining = true;
  accepting_.reset();
  receivers_.clear();
  loop_.sockets_.clear();
  for (auto& c : connections_) c.drain();
}

kj::Promise<void> http_floor::watch_clock() {
  auto tick = tick_of(shared_.limits);
  auto due = shared_.timer.now() + tick;
  return shared_.timer.afterDelay(tick).then([this, tick, due] {
    // When this thread itself was kept from working, what clients did meanwhile is heard first.
    bool late = shared_.timer.now() > due + tick;
    late_ = late && !late_;
    if (!late_)
      for (auto& c : connections_) c.tick();
    publish();
    return watch_clock();
  });
}

/// Destroying a connection from within one of its own tasks is not allowed.
void http_floor::bury_later() {
  if (std::exchange(burying_, true)) return;
  tasks_.add(kj::evalLater([this] {
    burying_ = false;
    connections_.remove_if([](const connection& c) { return c.dead(); });
    publish();
  }));
}

void http_floor::publish() {
  loop_.connections.store(connections_.size(), std::memory_order_relaxed);
  loop_.requests.store(shared_.requests, std::memory_order_relaxed);
  loop_.refused.store(shared_.refused, std::memory_order_relaxed);
}

http_loop::http_loop(std::vector<listen_socket> sockets, std::vector<http_listener> at, int wake_fd,
                     const http_limits& limits, http_handler& handler)
    : letters(wake_fd),
      bound(std::move(at)),
      sockets_(std::move(sockets)),
      limits_(limits),
      handler_(handler) {}

http_loop::~http_loop() {
  if (!thread_.joinable()) return;
  letters.put(http_letter{.what = http_letter::quit{}});
  thread_.join();
}

result<void> http_loop::start(http_server& server) {
  std::promise<result<void>> ready;
  auto answer = ready.get_future();
  thread_ = std::thread(
      [this, &server, ready = std::move(ready)]() mutable { run(server, std::move(ready)); });
  auto started = answer.get();
  if (!started) thread_.join();
  return started;
}

void http_loop::run(http_server& server, std::promise<result<void>> ready) {
  bool running = false;
  bool ended = quietly([&] {
    auto io = kj::setupAsyncIo();
    tls_contexts tls;
    for (const auto& l : bound) {
      if (!l.tls) {
        tls.emplace_back();
        continue;
      }
      auto made = serving_tls(*l.tls, io.provider->getTimer(), limits_.handshake_ms);
      if (!made) return ready.set_value(fail("{} ({})", made.why().text, l.role));
      tls.push_back(*kj::mv(made));
    }
    http_floor floor(*this, server, io, kj::mv(tls));
    running = true;
    ready.set_value({});
    floor.run();
  });
  if (ended) return;
  check(!running);  // nothing that a client or the system does ends the loop
  ready.set_value(
      fail("http: cannot set up the server's thread; raise the limit of open files (ulimit -n)"));
}

}  // namespace lethe
