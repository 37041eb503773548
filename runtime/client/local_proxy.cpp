#include "runtime/client/local_proxy.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <set>
#include <unordered_map>
#include <vector>

#include "runtime/api/served_models.hpp"
#include "runtime/client/proxy_answer.hpp"
#include "runtime/config/listener_text.hpp"
#include "runtime/http/path_segment.hpp"

namespace lethe {

namespace {

/// A page that a browser shows must not reach this, under whatever name it calls this machine.
bool is_local(const http_head& head) {
  if (!head.field("origin").empty()) return false;
  auto host = head.field("host");
  const auto colon = host.rfind(':');
  if (colon != host.npos && host.find(']', colon) == host.npos) host = host.substr(0, colon);
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

api_refusal refusal_of(const http_head& head) {
  auto as = [](int status, const char* code, const char* message) {
    return api_error{.status = status, .code = code, .message = message};
  };
  if (!is_local(head)) return as(403, "not_local", "only programs of this machine may ask");
  const bool call = std::ranges::find(call_paths, head.path) != std::end(call_paths);
  if (!call && head.path != models_path && !head.path.starts_with(one_model_path))
    return as(404, "not_found",
              "there is no such path; this serves /v1/chat/completions, "
              "/v1/completions, /v1/models and /v1/models/MODEL");
  if (call && head.method != "POST") return as(405, "method_not_allowed", "use POST");
  if (!call && head.method != "GET") return as(405, "method_not_allowed", "use GET");
  return {};
}

/// The roster's classes of models.
std::string models_json(const cluster_state& state) {
  std::set<std::string_view> names;
  for (const auto& leaf : state.nodes.leaves) names.insert(leaf.model_class);
  std::vector<served_model> all;
  for (auto name : names) all.push_back({name});
  return to_json(all);
}

void answer_error(http_server& to, uint64_t id, const api_error& why) {
  to.answer(id, {.status = why.status}, to_json(why));
}

}  // namespace

/// The server's thread takes requests in; each of some threads of its own answers one at a time.
class local_proxy::desk final : public http_handler {
 public:
  desk(private_client& client, uint32_t calls_max, watcher watch)
      : client_(client), calls_max_(calls_max), watch_(std::move(watch)) {}
  ~desk() override {
    {
      std::lock_guard lock(mutex_);
      waiting_.clear();
      for (auto& [id, answer] : answering_) answer->stop();
    }
    workers_.clear();
    server_.reset();
  }
  result<void> open(const std::string& address) {
    const http_listener where[] = {{"proxy", address}};
    auto server = http_server::start(where, {.arena_bytes_more = size_t{96} << 20}, *this);
    if (!server) return server.why();
    server_ = *std::move(server);
    for (uint32_t i = 0; i < calls_max_; ++i)
      workers_.emplace_back([this](std::stop_token stop) { work(std::move(stop)); });
    return {};
  }
  http_server& server() const { return *server_; }

  void arrived(http_server& from, http_request r) override {
    if (auto no = refusal_of(r.head)) return answer_error(from, r.id, *no);
    std::unique_lock lock(mutex_);
    if (waiting_.size() >= calls_max_) {
      lock.unlock();
      return answer_error(from, r.id,
                          {.status = 503,
                           .type = "server_error",
                           .code = "proxy_busy",
                           .message = "too many calls wait already; ask fewer at once"});
    }
    answering_[r.id] = std::make_shared<proxy_answer>(from, r.id);
    waiting_.push_back(std::move(r));
    changed_.notify_one();
  }
  void left(uint64_t id) override {
    if (auto answer = find(id)) answer->leave();
    sent(id);
  }
  void drained(uint64_t id, size_t bytes) override {
    if (auto answer = find(id)) answer->drained(bytes);
  }
  void sent(uint64_t id) override {
    std::lock_guard lock(mutex_);
    answering_.erase(id);
  }

 private:
  std::shared_ptr<proxy_answer> find(uint64_t id) {
    std::lock_guard lock(mutex_);
    auto at = answering_.find(id);
    return at == answering_.end() ? nullptr : at->second;
  }

  void work(std::stop_token stop) {
    while (true) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
      http_request request = std::move(waiting_.front());
      waiting_.pop_front();
      auto at = answering_.find(request.id);
      if (at == answering_.end()) continue;  // it left
      auto answer = at->second;
      lock.unlock();
      std::stop_callback leaving(stop, [&answer] { answer->stop(); });
      serve(request, *answer);
    }
  }

  void serve(http_request& request, proxy_answer& answer) try {
    if (request.head.path.starts_with(models_path)) return show_models(request, answer);
    auto* memory = request.memory.resource();
    auto body = without_labels(request.body, memory);
    if (!body)
      return answer_error(*server_, request.id, {.status = 400, .message = body.why().text});
    const uint64_t number = ++calls_;
    private_ask what{
        .path = request.head.path, .body = *body, .sink = answer, .stop = answer.token()};
    if (watch_) what.observer = [this, number](const check_step& s) { watch_(number, s); };
    auto how = client_.call(what);
    if (watch_) watch_(number, outcome_of(how, answer.handed_on()));
    answer.end(how);
  } catch (const std::bad_alloc&) {
    answer.end(fault(call_fault::request, "the request does not fit its memory"));
  }

  static check_step outcome_of(const private_answer& how, bool handed_on) {
    auto detail = fmt::format("{} draw{}", how.draws, how.draws == 1 ? "" : "s");
    if (how) return {"call", true, fmt::format("{}, {} arenas wiped", detail, how.proof->arenas)};
    detail += handed_on ? "; its application has the answer, and no proof of it: " : "; ";
    return {"call", false, detail + how.why.text};
  }

  void show_models(const http_request& request, proxy_answer& answer) {
    auto state = client_.state(answer.token());
    if (!state) return answer.end(state.end);
    if (request.head.path == models_path)
      return server_->answer(request.id, {}, models_json(**state));
    const auto name = decoded_segment(request.head.path.substr(one_model_path.size()));
    const auto& leaves = (*state)->nodes.leaves;
    if (std::ranges::find(leaves, name, &roster_leaf::model_class) == leaves.end())
      return answer_error(*server_, request.id,
                          {.status = 404,
                           .code = "model_not_found",
                           .param = "model",
                           .message = "the roster has no such model; see /v1/models"});
    server_->answer(request.id, {}, to_json(served_model{name}));
  }

  private_client& client_;
  const uint32_t calls_max_;
  const watcher watch_;
  std::atomic<uint64_t> calls_{0};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<http_request> waiting_;
  std::unordered_map<uint64_t, std::shared_ptr<proxy_answer>> answering_;
  std::unique_ptr<http_server> server_;
  std::vector<std::jthread> workers_;
};

local_proxy::local_proxy(std::unique_ptr<desk> d) : desk_(std::move(d)) {}
local_proxy::~local_proxy() = default;

result<std::unique_ptr<local_proxy>> local_proxy::start(private_client& client,
                                                        const std::string& address,
                                                        uint32_t calls_max, watcher watch) {
  auto where = listener_text::parse(address);
  if (!where.valid) return fail("{}: {}", address, listener_form);
  if (!where.loopback)
    return fail("{}: a proxy listens on loopback only: prompts come to it in the clear", address);
  auto d = std::make_unique<desk>(client, calls_max, std::move(watch));
  if (auto ok = d->open(address); !ok) return ok.why();
  return std::unique_ptr<local_proxy>(new local_proxy(std::move(d)));
}

const std::vector<http_listener>& local_proxy::bound() const { return desk_->server().bound(); }

}  // namespace lethe
