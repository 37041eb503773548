#include "runtime/http/http_client.hpp"

#include <kj/async-unix.h>
#include <kj/debug.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <future>
#include <list>
#include <thread>
#include <unordered_map>
#include <variant>

#include "runtime/http/client_connection.hpp"
#include "runtime/http/http_tls.hpp"
#include "runtime/http/letter_box.hpp"
#include "runtime/http/quiet_kj.hpp"
#include "runtime/http/request_head.hpp"
#include "runtime/http/untold_credit.hpp"

namespace lethe {
namespace {

struct client_letter {
  struct took {
    uint64_t call;
    size_t bytes;
  };
  struct write {
    uint64_t call;
    std::string piece;
  };
  struct finish {
    uint64_t call;
  };
  struct cancel {
    uint64_t call;
  };
  struct quit {};
  std::variant<open_call, took, write, finish, cancel, quit> what;
};

kj::Duration tick_of(const http_client_limits& l) {
  auto shortest = std::min({l.connect_ms, l.answer_ms, l.stall_ms, l.idle_ms});
  return std::clamp(shortest / 4, 5u, 250u) * kj::MILLISECONDS;
}

/// A line end in a field would begin another request.
result<void> check_call(const http_call& c) {
  bool line = is_token(c.method) && c.path.starts_with('/') &&
              std::ranges::all_of(c.path, [](char b) { return b > ' ' && b < 0x7f; });
  bool fields = std::ranges::all_of(
      c.fields, [](const auto& f) { return is_token(f.first) && is_field_value(f.second); });
  if (!line || !fields) return fail("{}: the call has no form in HTTP", c.to.text());
  return {};
}

}  // namespace

/// The client's thread, and what it shares with others.
class http_client_loop {
 public:
  http_client_loop(int wake_fd, const http_client_limits& l, kj::Own<kj::TlsContext> tls)
      : letters(wake_fd), credit(l.window_bytes), limits_(l), tls_(kj::mv(tls)) {}
  ~http_client_loop() {
    if (!thread_.joinable()) return;
    letters.put(client_letter{client_letter::quit{}});
    thread_.join();
  }
  result<void> start();

  letter_box<client_letter> letters;
  untold_credit credit;  // of calls that have not ended
  std::atomic<uint64_t> calls{0};

 private:
  friend class client_floor;
  void run(std::promise<result<void>> ready);

  const http_client_limits limits_;
  kj::Own<kj::TlsContext> tls_;  // its thread's alone, once that runs
  std::thread thread_;
};

/// All that lives on the client's thread.
class client_floor final : private kj::TaskSet::ErrorHandler {
 public:
  client_floor(http_client_loop& loop, kj::AsyncIoContext& io)
      : loop_(loop),
        shared_{.limits = loop.limits_,
                .network = io.provider->getNetwork(),
                .timer = io.provider->getTimer(),
                .tls = [this]() -> kj::TlsContext& { return tls(); }},
        wake_(io.unixEventPort, loop.letters.fd(), kj::UnixEventPort::FdObserver::OBSERVE_READ),
        done_(kj::newPromiseAndFulfiller<void>()),
        tasks_(*this) {
    shared_.call_ended = [this](uint64_t id) { loop_.credit.end(id), on_.erase(id); };
    shared_.settle = [this] { settle_later(); };
    tasks_.add(read_letters());
    tasks_.add(watch_clock());
  }
  ~client_floor() noexcept(false) {
    auto over = fail("this client ends");
    for (auto& call : waiting_) end_unplaced(call, over);
    for (auto& c : connections_) c.give_up(over);
  }
  void run(kj::WaitScope& scope) { done_.promise.wait(scope); }

 private:
  void taskFailed(kj::Exception&& why) override { done_.fulfiller->reject(kj::mv(why)); }
  kj::TlsContext& tls();
  kj::Promise<void> read_letters();
  kj::Promise<void> watch_clock();
  void deliver(client_letter& letter);
  void ask(open_call call);
  bool place(open_call& call);
  void end_unplaced(open_call& call, const result<void>& how);
  open_call* waiting(uint64_t id);
  void write(uint64_t id, std::string_view piece);
  void finish(uint64_t id);
  void cancel(uint64_t id);
  void settle_later();
  void settle();

  http_client_loop& loop_;
  client_shared shared_;
  kj::UnixEventPort::FdObserver wake_;
  kj::PromiseFulfillerPair<void> done_;
  std::list<client_connection> connections_;
  std::unordered_map<uint64_t, client_connection*> on_;  // calls, by id
  std::deque<open_call> waiting_;
  bool settling_ = false;
  kj::TaskSet tasks_;
};

/// Within a connection's task: what it throws ends that connection only.
kj::TlsContext& client_floor::tls() {
  if (loop_.tls_) return *loop_.tls_;
  auto made = asking_tls({});
  if (!made)
    kj::throwFatalException(KJ_EXCEPTION(FAILED, "the system's authorities cannot be read"));
  loop_.tls_ = *kj::mv(made);
  return *loop_.tls_;
}

kj::Promise<void> client_floor::read_letters() {
  // Asked for first: an edge between taking the letters and asking would be lost.
  auto next = wake_.whenBecomesReadable();
  for (auto& letter : loop_.letters.take()) deliver(letter);
  return next.then([this] { return read_letters(); });
}

kj::Promise<void> client_floor::watch_clock() {
  return shared_.timer.afterDelay(tick_of(shared_.limits)).then([this] {
    for (auto& c : connections_) c.tick();
    return watch_clock();
  });
}

void client_floor::deliver(client_letter& letter) {
  if (auto* call = std::get_if<open_call>(&letter.what)) return ask(std::move(*call));
  if (auto* took = std::get_if<client_letter::took>(&letter.what)) {
    if (auto at = on_.find(took->call); at != on_.end()) at->second->took(took->bytes);
  } else if (auto* more = std::get_if<client_letter::write>(&letter.what)) {
    write(more->call, more->piece);
  } else if (auto* last = std::get_if<client_letter::finish>(&letter.what)) {
    finish(last->call);
  } else if (auto* cancels = std::get_if<client_letter::cancel>(&letter.what)) {
    cancel(cancels->call);
  } else {
    done_.fulfiller->fulfill();
  }
}

void client_floor::ask(open_call call) {
  auto good = check_call(call.what);
  if (!good) return end_unplaced(call, good);
  if (place(call)) return;
  if (waiting_.size() >= shared_.limits.waiting_max)
    return end_unplaced(call, fail("{}: {} calls wait already; ask fewer at once",
                                   call.what.to.text(), waiting_.size()));
  waiting_.push_back(std::move(call));
}

/// On a connection that is kept, or on a new one if there may be more.
bool client_floor::place(open_call& call) {
  client_connection* free = nullptr;
  size_t others = 0;
  for (auto& c : connections_) {
    if (c.dead() || c.to() != call.what.to) continue;
    if (c.idle() && c.still_there()) free = &c;
    others += !c.idle() || &c == free;
  }
  if (!free && others >= shared_.limits.connections_max) return false;
  if (!free) free = &connections_.emplace_back(shared_, call.what.to);
  on_[call.id] = free;
  free->begin(std::move(call));
  return true;
}

open_call* client_floor::waiting(uint64_t id) {
  auto at = std::ranges::find(waiting_, id, &open_call::id);
  return at == waiting_.end() ? nullptr : &*at;
}

void client_floor::write(uint64_t id, std::string_view piece) {
  if (auto at = on_.find(id); at != on_.end())
    at->second->write(piece);
  else if (auto* call = waiting(id); call && call->what.streamed)
    call->what.body += piece;
}

void client_floor::finish(uint64_t id) {
  if (auto at = on_.find(id); at != on_.end())
    at->second->finish();
  else if (auto* call = waiting(id))
    call->what.streamed = false;
}

void client_floor::cancel(uint64_t id) {
  auto over = fail("cancelled");
  if (auto at = on_.find(id); at != on_.end()) return at->second->give_up(over);
  auto waits = std::ranges::find(waiting_, id, &open_call::id);
  if (waits == waiting_.end()) return;
  auto call = std::move(*waits);
  waiting_.erase(waits);
  end_unplaced(call, over);
}

/// Of one that never had a connection.
void client_floor::end_unplaced(open_call& call, const result<void>& how) {
  loop_.credit.end(call.id);
  call.who->ended(call.id, how);
}

/// Destroying a connection from within one of its own tasks is not allowed.
void client_floor::settle_later() {
  if (std::exchange(settling_, true)) return;
  tasks_.add(kj::evalLater([this] { settle(); }));
}

void client_floor::settle() {
  settling_ = false;
  connections_.remove_if([](const client_connection& c) { return c.dead(); });
  for (auto at = waiting_.begin(); at != waiting_.end();)
    at = place(*at) ? waiting_.erase(at) : std::next(at);
}

result<void> http_client_loop::start() {
  std::promise<result<void>> ready;
  auto answer = ready.get_future();
  thread_ = std::thread([this, ready = std::move(ready)]() mutable { run(std::move(ready)); });
  auto started = answer.get();
  if (!started) thread_.join();
  return started;
}

void http_client_loop::run(std::promise<result<void>> ready) {
  bool running = false;
  bool ended = quietly([&] {
    auto io = kj::setupAsyncIo();
    client_floor floor(*this, io);
    running = true;
    ready.set_value({});
    floor.run(io.waitScope);
  });
  if (ended) return;
  check(!running);  // nothing that a server or the system does ends the loop
  ready.set_value(
      fail("http: cannot set up the client's thread; raise the limit of open files (ulimit -n)"));
}

http_client::http_client(std::unique_ptr<http_client_loop> loop) : loop_(std::move(loop)) {}
http_client::~http_client() = default;

result<std::unique_ptr<http_client>> http_client::start(const http_client_limits& limits,
                                                        const http_trust& trust) {
  kj::Own<kj::TlsContext> tls;
  if (!trust.authorities.empty()) {
    auto made = asking_tls(trust);
    if (!made) return made.why();
    tls = *kj::mv(made);
  }
  int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return fail("http: cannot make an eventfd: {}", std::strerror(errno));
  auto loop = std::make_unique<http_client_loop>(wake_fd, limits, kj::mv(tls));
  if (auto started = loop->start(); !started) return started.why();
  return std::unique_ptr<http_client>(new http_client(std::move(loop)));
}

uint64_t http_client::ask(http_call call, std::shared_ptr<http_call_watcher> who) {
  uint64_t id = loop_->calls.fetch_add(1) + 1;
  call.chunked |= call.streamed;
  loop_->credit.begin(id);
  loop_->letters.put(client_letter{open_call{id, std::move(call), std::move(who)}});
  return id;
}

void http_client::write(uint64_t call, std::string_view piece) {
  loop_->letters.put(client_letter{client_letter::write{call, std::string(piece)}});
}

void http_client::finish(uint64_t call) {
  loop_->letters.put(client_letter{client_letter::finish{call}});
}

void http_client::took(uint64_t call, size_t bytes) {
  if (const size_t due = loop_->credit.add(call, bytes); due > 0)
    loop_->letters.put(client_letter{client_letter::took{call, due}});
}

void http_client::cancel(uint64_t call) {
  loop_->letters.put(client_letter{client_letter::cancel{call}});
}

std::string http_origin::text() const {
  bool v6 = host.find(':') != host.npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "",
                     port);
}

result<std::pair<http_origin, std::string>> read_url(std::string_view url) {
  constexpr const char* form = "write http://HOST:PORT or https://HOST";
  http_origin o;
  o.tls = url.starts_with("https://");
  if (!o.tls && !url.starts_with("http://")) return fail("\"{}\" is no URL; {}", url, form);
  auto rest = url.substr(o.tls ? 8 : 7);
  auto slash = std::min(rest.find('/'), rest.size());
  auto place = rest.substr(0, slash);
  std::string path(rest.substr(slash));
  if (path.empty()) path = "/";
  auto colon = place.rfind(':');
  if (place.starts_with('[')) {
    auto close = place.find(']');
    if (close == place.npos) return fail("\"{}\" is no URL; {}", url, form);
    o.host = place.substr(1, close - 1);
    colon = close + 1 < place.size() ? close + 1 : place.npos;
    if (colon != place.npos && place[colon] != ':') return fail("\"{}\" is no URL; {}", url, form);
  } else {
    o.host = place.substr(0, colon);
  }
  o.port = o.tls ? 443 : 80;
  if (colon != place.npos) {
    auto digits = place.substr(colon + 1);
    auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), o.port);
    if (wrong != std::errc() || end != digits.data() + digits.size() || o.port == 0)
      return fail("\"{}\": its port is no number from 1 to 65535", url);
  }
  bool clean = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; }) &&
               path.find_first_of("?#") == path.npos && o.host.find('@') == o.host.npos;
  if (o.host.empty() || !clean) return fail("\"{}\" is no URL; {}", url, form);
  return std::pair(std::move(o), std::move(path));
}

namespace {

class whole_watcher final : public http_call_watcher {
 public:
  whole_watcher(http_client& client, std::function<void(result<http_whole>)> then)
      : client_(client), then_(std::move(then)) {}
  void began(uint64_t, const http_reply& head) override { got_.head = head; }
  void came(uint64_t call, std::string_view piece) override {
    got_.body += piece;
    client_.took(call, piece.size());
  }
  void ended(uint64_t, const result<void>& how) override {
    how ? then_(std::move(got_)) : then_(how.why());
  }

 private:
  http_client& client_;
  std::function<void(result<http_whole>)> then_;
  http_whole got_;
};

}  // namespace

uint64_t ask_whole(http_client& client, http_call call,
                   std::function<void(result<http_whole>)> then) {
  return client.ask(std::move(call), std::make_shared<whole_watcher>(client, std::move(then)));
}

result<http_whole> ask_whole(http_client& client, http_call call) {
  std::promise<result<http_whole>> said;
  auto heard = said.get_future();
  ask_whole(client, std::move(call),
            [&said](result<http_whole> how) { said.set_value(std::move(how)); });
  return heard.get();
}

}  // namespace lethe
