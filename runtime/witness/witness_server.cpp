#include "runtime/witness/witness_server.hpp"

#include <atomic>
#include <mutex>

#include "runtime/base/durable_file.hpp"
#include "runtime/http/request_crew.hpp"
#include "runtime/log/log_limits.hpp"
#include "runtime/log/witness.hpp"
#include "runtime/publish/kept_keys.hpp"

namespace lethe {

namespace {

constexpr std::string_view ask_path = "/add-checkpoint";
constexpr const char* plain = "text/plain; charset=utf-8";

result<note_signer> keep_signer(const std::filesystem::path& folder, const std::string& name) {
  if (auto ok = make_folder(folder); !ok) return ok.why();
  return keep_note_key(folder / "witness.key", name, note_algorithm::cosignature);
}

}  // namespace

result<note_key> keep_witness_key(const std::filesystem::path& folder, const std::string& name) {
  auto signer = keep_signer(folder, name);
  if (!signer) return signer.why();
  return signer->key();
}

/// The server's thread lets in; one more judges, which the disk may hold up.
class witness_server::house final : public http_handler {
 public:
  explicit house(const witness_config& config) : config_(config) {}
  ~house() override {
    if (crew_) crew_->stop();
    server_.reset();
  }

  result<void> open() {
    auto signer = keep_signer(config_.folder, config_.name);
    if (!signer) return signer.why();
    key_ = signer->key();
    auto judge = witness::open(config_.folder / "heads", *std::move(signer), config_.logs);
    if (!judge) return judge.why();
    judge_ = *std::move(judge);
    crew_ = std::make_unique<request_crew>(
        1, limits::witness_waiting_max, [this](http_server& to, http_request& r) { serve(to, r); });
    auto server = http_server::start(
        config_.listen, {.body_bytes_max = limits::witness_ask_bytes_max, .arena_bytes_more = 0},
        *this);
    if (!server) return server.why();
    server_ = *std::move(server);
    return {};
  }
  http_server& server() const { return *server_; }
  const note_key& key() const { return *key_; }
  witness_numbers numbers() const {
    return {.cosigned = cosigned_, .refused = refused_, .failed = failed_, .open = open_};
  }
  std::string trouble() const {
    std::lock_guard guard(lock_);
    return trouble_;
  }

  void arrived(http_server& from, http_request r) override {
    ++open_;
    const uint64_t id = r.id;
    const bool asks = r.head.path == ask_path;
    if ((!asks && r.head.path != "/") || !r.head.query.empty())
      return refuse(from, id, 404, "there is no such path");
    if (r.head.method != (asks ? "POST" : "GET"))
      return refuse(from, id, 405, asks ? "use POST" : "use GET");
    if (!asks)
      return from.answer(id, {.content_type = plain},
                         fmt::format("a witness of logs, add-checkpoint: {}\n", key_->text()));
    if (!crew_->put(from, std::move(r))) refuse(from, id, 503, "too many wait; ask later");
  }
  void left(uint64_t id) override {
    crew_->drop(id);
    --open_;
  }
  void drained(uint64_t, size_t) override {}
  void sent(uint64_t) override { --open_; }

 private:
  void refuse(http_server& to, uint64_t id, int status, std::string_view why) {
    ++refused_;
    http_answer head{.status = status, .content_type = plain};
    if (status == 503) head.fields.emplace_back("Retry-After", "5");
    to.answer(id, std::move(head), why);
  }

  void serve(http_server& to, http_request& r) {
    auto answer = judge_->add_checkpoint(r.body, config_.now_s());
    ++(answer.status == 200 ? cosigned_ : answer.status == 500 ? failed_ : refused_);
    if (answer.status == 200 || answer.status == 500) {
      std::lock_guard guard(lock_);
      trouble_ = answer.status == 200 ? "" : answer.body.substr(0, answer.body.find('\n'));
    }
    to.answer(r.id, {.status = answer.status, .content_type = std::move(answer.type)}, answer.body);
  }

  const witness_config config_;
  std::atomic<uint64_t> cosigned_{0}, refused_{0}, failed_{0}, open_{0};
  mutable std::mutex lock_;
  std::string trouble_;
  std::optional<note_key> key_;
  std::optional<witness> judge_;        // the crew's alone
  std::unique_ptr<request_crew> crew_;  // each tells the other, so it stops before the server ends
  std::unique_ptr<http_server> server_;
};

witness_server::witness_server(std::unique_ptr<house> h) : house_(std::move(h)) {}
witness_server::~witness_server() = default;

result<std::unique_ptr<witness_server>> witness_server::start(const witness_config& config) {
  auto h = std::make_unique<house>(config);
  if (auto ok = h->open(); !ok) return ok.why();
  return std::unique_ptr<witness_server>(new witness_server(std::move(h)));
}

const std::vector<http_listener>& witness_server::bound() const { return house_->server().bound(); }
witness_numbers witness_server::numbers() const { return house_->numbers(); }
const note_key& witness_server::key() const { return house_->key(); }
std::string witness_server::trouble() const { return house_->trouble(); }
void witness_server::stop_accepting() { house_->server().stop_accepting(); }

}  // namespace lethe
