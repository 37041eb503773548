#include "runtime/relay/relay.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "runtime/crypto/ohttp_names.hpp"

namespace lethe {

namespace {

constexpr std::string_view keys_path = ohttp_names::gateway_path;
constexpr std::string_view asks[] = {ohttp_names::request, ohttp_names::chunked_request};

struct refusal {
  int status;
  std::string_view why;
};

/// Nothing for what a relay passes on.
std::optional<refusal> refusal_of(const http_head& head) {
  if (head.path == keys_path && head.query.empty()) {
    if (head.method == "GET") return {};
    return refusal{405, "use GET"};
  }
  if (head.path != "/" || !head.query.empty()) return refusal{404, "there is no such path"};
  if (head.method != "POST") return refusal{405, "use POST"};
  if (std::ranges::find(asks, head.field("content-type")) == std::end(asks))
    return refusal{415, "only encapsulated requests: message/ohttp-req, message/ohttp-chunked-req"};
  return {};
}

struct relay_counts {
  std::atomic<uint64_t> exchanges{0}, open{0}, refused{0}, failed{0};

  void say(std::string text) {
    std::lock_guard guard(lock);
    trouble = std::move(text);
  }
  std::mutex lock;
  std::string trouble;  // with the gateway
};

/// The way back of one exchange: what the gateway says goes to the client, until that has left.
class way_back final : public http_call_watcher {
 public:
  way_back(http_server& to, uint64_t id, relay_counts& counts, web_origins::fields for_browsers)
      : to_(&to), id_(id), counts_(counts), for_browsers_(std::move(for_browsers)) {}

  /// From here on nothing of this touches the server.
  void close() {
    std::lock_guard guard(lock_);
    to_ = nullptr;
  }

  void began(uint64_t, const http_reply& head) override {
    http_answer answer{.status = head.status,
                       .content_type = std::string(head.field("content-type")),
                       .fields = for_browsers_};
    if (head.frame == body_frame::length) answer.content_length = head.content_length;
    for (auto name : {"Incremental", "Cache-Control"})
      if (auto value = head.field(name); !value.empty()) answer.fields.emplace_back(name, value);
    begun_ = true;
    counts_.say({});
    with_server([&](http_server& s) { s.begin(id_, std::move(answer)); });
  }
  void came(uint64_t, std::string_view piece) override {
    with_server([&](http_server& s) { s.write(id_, piece); });
  }
  void drained(uint64_t, size_t bytes) override {
    with_server([&](http_server& s) { s.took(id_, bytes); });
  }
  void ended(uint64_t, const result<void>& how) override {
    with_server([&](http_server& s) {
      if (how) return s.end(id_);
      ++counts_.failed;
      counts_.say("the gateway: " + how.why().text);
      if (begun_) return s.cut(id_);
      s.answer(id_, {.status = 502, .content_type = "text/plain", .fields = for_browsers_},
               "the gateway did not answer");
    });
  }

 private:
  template <class Do>
  void with_server(Do act) {
    std::lock_guard guard(lock_);
    if (to_) act(*to_);
  }

  std::mutex lock_;
  http_server* to_;
  uint64_t id_;
  bool begun_ = false;
  relay_counts& counts_;
  const web_origins::fields for_browsers_;
};

}  // namespace

/// The way there, on the server's thread.
class relay::desk final : public http_handler {
 public:
  explicit desk(const relay_config& config) : config_(config) {}
  ~desk() override { server_.reset(); }  // every exchange leaves, while there is a client to tell

  result<void> open() {
    auto client = http_client::start({.body_bytes_max = config_.answer_bytes_max,
                                      .window_bytes = config_.window_bytes,
                                      .connections_max = config_.connections_max},
                                     config_.trust);
    if (!client) return client.why();
    client_ = *std::move(client);
    auto where = config_.listen;
    for (auto& w : where) w.body_window = config_.window_bytes;
    auto server = http_server::start(where,
                                     {.body_bytes_max = config_.request_bytes_max,
                                      .arena_bytes_more = 0,
                                      .connections_max = config_.connections_max},
                                     *this);
    if (!server) return server.why();
    server_ = *std::move(server);
    return {};
  }
  http_server& server() const { return *server_; }
  relay_counts& counts() { return counts_; }

  void arrived(http_server& from, http_request r) override {
    if (r.head.path == "/" && r.head.query.empty())
      if (auto may = config_.origins.preflight(r.head, "POST", "content-type, incremental"))
        return from.answer(r.id, *std::move(may), {});
    auto for_browsers = config_.origins.fields_for(r.head);
    if (auto no = refusal_of(r.head)) {
      ++counts_.refused;
      return from.answer(
          r.id,
          {.status = no->status, .content_type = "text/plain", .fields = std::move(for_browsers)},
          no->why);
    }
    ++counts_.exchanges;
    auto back = std::make_shared<way_back>(from, r.id, counts_, std::move(for_browsers));
    open_.emplace(r.id, exchange{client_->ask(call_for(r), back), back});
    counts_.open = open_.size();
  }
  void came(uint64_t id, std::string_view piece) override {
    if (auto* x = find(id)) client_->write(x->call, piece);
  }
  void whole(uint64_t id) override {
    if (auto* x = find(id)) client_->finish(x->call);
  }
  void drained(uint64_t id, size_t bytes) override {
    if (auto* x = find(id)) client_->took(x->call, bytes);
  }
  void left(uint64_t id) override {
    if (auto* x = find(id)) client_->cancel(x->call);
    sent(id);
  }
  void sent(uint64_t id) override {
    if (auto* x = find(id)) x->back->close();
    open_.erase(id);
    counts_.open = open_.size();
  }

 private:
  struct exchange {
    uint64_t call;
    std::shared_ptr<way_back> back;
  };
  exchange* find(uint64_t id) {
    auto at = open_.find(id);
    return at == open_.end() ? nullptr : &at->second;
  }
  /// Nothing goes along but what is named here.
  http_call call_for(const http_request& r) const {
    if (r.head.method == "GET") return {.to = config_.gateway, .path = std::string(keys_path)};
    http_call call{.to = config_.gateway,
                   .method = "POST",
                   .path = config_.gateway_path,
                   .fields = {{"Content-Type", std::string(r.head.field("content-type"))}},
                   .streamed = true};
    if (r.head.field("incremental") == "?1") call.fields.emplace_back("Incremental", "?1");
    return call;
  }

  const relay_config config_;
  relay_counts counts_;
  std::unique_ptr<http_client> client_;
  std::unique_ptr<http_server> server_;
  std::unordered_map<uint64_t, exchange> open_;  // the server's thread's alone
};

relay::relay(std::unique_ptr<desk> d) : desk_(std::move(d)) {}
relay::~relay() = default;

result<std::unique_ptr<relay>> relay::start(const relay_config& config) {
  auto d = std::make_unique<desk>(config);
  if (auto ok = d->open(); !ok) return ok.why();
  return std::unique_ptr<relay>(new relay(std::move(d)));
}

const std::vector<http_listener>& relay::bound() const { return desk_->server().bound(); }

relay_numbers relay::numbers() const {
  const auto& c = desk_->counts();
  return {.exchanges = c.exchanges, .open = c.open, .refused = c.refused, .failed = c.failed};
}

std::string relay::trouble() const {
  auto& c = desk_->counts();
  std::lock_guard guard(c.lock);
  return c.trouble;
}

void relay::stop_accepting() { desk_->server().stop_accepting(); }

}  // namespace lethe
