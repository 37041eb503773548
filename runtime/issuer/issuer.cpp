#include "runtime/issuer/issuer.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "runtime/base/durable_file.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/http/bearer.hpp"
#include "runtime/http/request_crew.hpp"
#include "runtime/issuer/epoch_turns.hpp"
#include "runtime/issuer/token_till.hpp"
#include "runtime/store/key_file.hpp"
#include "runtime/token/token_names.hpp"

namespace lethe {

namespace fs = std::filesystem;

namespace {

struct door {
  std::string_view path, method, media;  // of what comes in
};
constexpr door directory_door{token_directory_path, "GET", {}};
constexpr door one_door{"/token-request", "POST", token_request_media};
constexpr door batch_door{"/token-request-batch", "POST", token_batch_request_media};
constexpr door change_door{"/change", "POST", "application/lethe-change"};

const door* door_of(const http_head& head) {
  for (const door* d : {&directory_door, &one_door, &batch_door, &change_door})
    if (head.path == d->path && head.query.empty()) return d;
  return nullptr;
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

/// 32 random bytes as a line of hex digits.
result<secret_bytes> make_secret() {
  constexpr std::string_view digits = "0123456789abcdef";
  secret_bytes random(32), text(2 * random.size() + 1);
  fill_random(random.bytes());
  for (size_t i = 0; i < random.size(); ++i) {
    text.bytes()[2 * i] = std::byte(digits[uint8_t(random.view()[i]) >> 4]);
    text.bytes()[2 * i + 1] = std::byte(digits[uint8_t(random.view()[i]) & 15]);
  }
  text.bytes()[text.size() - 1] = std::byte('\n');
  return text;
}

/// The first line of the file.
result<secret_bytes> keep_secret(const fs::path& path) {
  constexpr key_length length{limits::shared_secret_bytes_min, limits::shared_secret_bytes_max};
  if (auto ok = make_folder(path.parent_path()); !ok) return ok.why();
  auto kept = keep_key(path, length, make_secret);
  if (!kept) return kept.why();
  auto line = kept->text().substr(0, kept->text().find('\n'));
  if (line.size() < length.least)
    return fail("{}: its first line has {} bytes; the secret has {} or more", path.string(),
                line.size(), length.least);
  return secret_bytes(as_bytes(line));
}

struct issuer_counts {
  std::atomic<uint64_t> accounts{0}, bought{0}, changed{0}, refused{0}, failed{0}, open{0};
};

}  // namespace

result<std::unique_ptr<account_store>> open_accounts(const fs::path& folder) {
  if (auto made = make_folder(folder, 0700); !made) return made.why();
  return account_store::open({folder / "accounts.db"});
}

/// The server's thread lets in, the crew answers, one more thread looks at the clock.
class issuer::house final : public http_handler {
 public:
  explicit house(const issuer_config& config) : config_(config) {}
  ~house() override;

  result<void> open();
  http_server& server() const { return *server_; }
  issuer_numbers numbers() const;
  std::string trouble() const;

  void arrived(http_server& from, http_request r) override;
  void left(uint64_t id) override {
    crew_->drop(id);
    --counts_.open;
  }
  void drained(uint64_t, size_t) override {}
  void sent(uint64_t) override { --counts_.open; }

 private:
  result<void> open_stores();
  std::optional<till_answer> refusal_of(const door* to, const http_head& head) const;
  web_origins::fields for_browsers(const door* to, const http_head& head) const;
  void publish(http_server& to, uint64_t id, web_origins::fields fields) const;
  void serve(http_server& to, http_request& r);
  till_answer ask_till(const http_request& r);
  void say(http_server& to, uint64_t id, const till_answer& a, web_origins::fields fields);
  void look_at_clock();
  void keep_time();

  const issuer_config config_;
  issuer_counts counts_;
  std::unique_ptr<account_store> accounts_;
  std::unique_ptr<change_store> changes_;
  secret_bytes secret_;
  std::optional<epoch_turns> turns_;
  std::optional<token_till> till_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::string turn_trouble_, till_trouble_;
  std::unique_ptr<request_crew> crew_;  // each tells the other, so it stops before the server ends
  std::unique_ptr<http_server> server_;
  std::thread clock_;
};

issuer::house::~house() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (clock_.joinable()) clock_.join();
  if (crew_) crew_->stop();
  server_.reset();
}

result<void> issuer::house::open() {
  if (config_.batch == 0 || config_.batch > limits::token_batch_max)
    return fail("issuer: a batch of {}; it has 1 to {} tokens", config_.batch,
                limits::token_batch_max);
  if (config_.epoch_s == 0) return fail("issuer: a token epoch has 1 second or more");
  if (auto ok = open_stores(); !ok) return ok;
  turns_.emplace(config_.folder, config_.epoch_s, *accounts_, *changes_);
  if (auto ok = turns_->turn(config_.now_s()); !ok) return ok;
  look_at_clock();
  till_.emplace(till_rules{config_.epoch_s, config_.batch}, *accounts_, *changes_);
  crew_ =
      std::make_unique<request_crew>(config_.threads, config_.waiting_max,
                                     [this](http_server& to, http_request& r) { serve(to, r); });
  auto server = http_server::start(
      config_.listen, {.body_bytes_max = limits::issuer_body_bytes_max, .arena_bytes_more = 0},
      *this);
  if (!server) return server.why();
  server_ = *std::move(server);
  clock_ = std::thread([this] { keep_time(); });
  return {};
}

/// Changed tokens come first: that file is one process's alone, and so is the folder then.
result<void> issuer::house::open_stores() {
  if (auto made = make_folder(config_.folder, 0700); !made) return made.why();
  auto changes = change_store::open({config_.folder / "changed.db"});
  if (!changes) return fail("the issuer's folder: {}", changes.why().text);
  changes_ = *std::move(changes);
  auto accounts = open_accounts(config_.folder);
  if (!accounts) return accounts.why();
  accounts_ = *std::move(accounts);
  auto secret =
      keep_secret(config_.secret.empty() ? config_.folder / "gateway.secret" : config_.secret);
  if (!secret) return secret.why();
  secret_ = *std::move(secret);
  return {};
}

std::optional<till_answer> issuer::house::refusal_of(const door* to, const http_head& head) const {
  auto refused = [](int status, std::string why) {
    return till_answer{.status = status, .why = std::move(why)};
  };
  if (!to) return refused(404, "there is no such path");
  if (head.method != to->method) return refused(405, fmt::format("use {}", to->method));
  if (!to->media.empty() && head.field("content-type") != to->media)
    return refused(415, fmt::format("send {}", to->media));
  if (to == &change_door && !same_secret(bearer_of(head), secret_.text()))
    return refused(401, "only the gateway asks for change");
  return {};
}

/// Pages may look and buy; change is the gateway's.
web_origins::fields issuer::house::for_browsers(const door* to, const http_head& head) const {
  return to == &change_door ? web_origins::fields{} : config_.origins.fields_for(head);
}

void issuer::house::arrived(http_server& from, http_request r) {
  ++counts_.open;
  const auto* to = door_of(r.head);
  const uint64_t id = r.id;
  if (to == &one_door || to == &batch_door)
    if (auto may = config_.origins.preflight(r.head, "POST", "authorization, content-type"))
      return from.answer(id, *std::move(may), {});
  auto fields = for_browsers(to, r.head);
  if (auto no = refusal_of(to, r.head)) return say(from, id, *no, std::move(fields));
  if (to == &directory_door) return publish(from, id, std::move(fields));
  if (crew_->put(from, std::move(r))) return;
  till_answer busy{.status = 503, .why = "too many wait; ask later"};
  busy.retry_after_s = limits::issuer_busy_retry_s;
  say(from, id, busy, std::move(fields));
}

void issuer::house::publish(http_server& to, uint64_t id, web_origins::fields fields) const {
  const uint32_t age_s = std::min(limits::directory_age_max_s, config_.epoch_s / 2);
  fields.emplace_back("Cache-Control", fmt::format("public, max-age={}", age_s));
  to.answer(id, {.content_type = std::string(token_directory_media), .fields = std::move(fields)},
            *turns_->directory());
}

void issuer::house::serve(http_server& to, http_request& r) {
  auto answer = ask_till(r);
  counts_.bought += answer.sold;
  counts_.changed += answer.changed;
  {
    std::lock_guard lock(mutex_);
    if (answer.status == 200 || answer.status == 500) till_trouble_ = answer.fault;
  }
  say(to, r.id, answer, for_browsers(door_of(r.head), r.head));
}

till_answer issuer::house::ask_till(const http_request& r) {
  const auto keys = turns_->keys().hold();
  const uint64_t now_s = config_.now_s();
  const auto* to = door_of(r.head);
  if (to == &change_door) return till_->change(as_bytes(r.body), *keys, now_s);
  return to == &batch_door ? till_->sell_batch(bearer_of(r.head), as_bytes(r.body), *keys, now_s)
                           : till_->sell_one(bearer_of(r.head), as_bytes(r.body), *keys, now_s);
}

void issuer::house::say(http_server& to, uint64_t id, const till_answer& a,
                        web_origins::fields fields) {
  http_answer head{
      .status = a.status, .content_type = std::string(a.media), .fields = std::move(fields)};
  if (a.status == 401) head.fields.emplace_back("WWW-Authenticate", "Bearer");
  if (a.retry_after_s > 0)
    head.fields.emplace_back("Retry-After", fmt::format("{}", a.retry_after_s));
  if (a.status == 200) return to.answer(id, std::move(head), as_text(a.body));
  ++(a.status == 500 ? counts_.failed : counts_.refused);
  to.answer(id, std::move(head), a.why);
}

void issuer::house::look_at_clock() {
  auto turned = turns_->turn(config_.now_s());
  if (auto n = accounts_->count()) counts_.accounts = *n;
  std::lock_guard lock(mutex_);
  turn_trouble_ = turned ? "" : turned.why().text;
}

void issuer::house::keep_time() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, config_.look_every, [this] { return stopping_; })) {
    lock.unlock();
    look_at_clock();
    lock.lock();
  }
}

issuer_numbers issuer::house::numbers() const {
  const auto& c = counts_;
  return {.accounts = c.accounts,
          .bought = c.bought,
          .changed = c.changed,
          .refused = c.refused,
          .failed = c.failed,
          .open = c.open,
          .epoch = turns_->shelf().epoch_at(config_.now_s())};
}

std::string issuer::house::trouble() const {
  std::lock_guard lock(mutex_);
  return turn_trouble_.empty() ? till_trouble_ : turn_trouble_;
}

issuer::issuer(std::unique_ptr<house> h) : house_(std::move(h)) {}
issuer::~issuer() = default;

result<std::unique_ptr<issuer>> issuer::start(const issuer_config& config) {
  auto h = std::make_unique<house>(config);
  if (auto ok = h->open(); !ok) return ok.why();
  return std::unique_ptr<issuer>(new issuer(std::move(h)));
}

const std::vector<http_listener>& issuer::bound() const { return house_->server().bound(); }
issuer_numbers issuer::numbers() const { return house_->numbers(); }
std::string issuer::trouble() const { return house_->trouble(); }
void issuer::stop_accepting() { house_->server().stop_accepting(); }

}  // namespace lethe
