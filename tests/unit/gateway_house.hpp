#pragma once

#include <caf/all.hpp>

#include "actors/cluster/gateway.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/ohttp_names.hpp"
#include "runtime/crypto/refusal.hpp"
#include "runtime/crypto/sealed_message.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/token/base64url.hpp"
#include "tests/unit/http_peers.hpp"
#include "tests/unit/store_samples.hpp"
#include "tests/unit/token_samples.hpp"

/// The gateway's actor as it runs, behind a real HTTP server and with real tokens, seals and
/// stores. Scheduler, directory and issuer are the test's.
namespace lethe::test {

using namespace std::chrono_literals;
using http_test::eventually;

/// What threads write and a test waits for.
class blackboard {
 public:
  template <class Write>
  void write(Write w) {
    {
      std::lock_guard guard(mutex_);
      w();
    }
    changed_.notify_all();
  }
  template <class Read>
  auto read(Read r) {
    std::lock_guard guard(mutex_);
    return r();
  }
  /// False: patience has ended.
  template <class Condition>
  bool wait(Condition holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, http_test::patience, holds);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// A store that waits or fails as its test wants.
struct ledger_gate : blackboard {
  bool shut = false;  // spends wait
  uint32_t waiting = 0;
  bool spends_fail = false, settles_fail = false;
};

class gated_ledger final : public spend_ledger {
 public:
  gated_ledger(std::unique_ptr<spend_ledger> inner, std::shared_ptr<ledger_gate> gate)
      : inner_(std::move(inner)), gate_(std::move(gate)) {}

  result<void> commit(std::span<spend_entry> spends, std::span<const settlement> settles) override {
    auto& g = *gate_;
    if (!spends.empty()) {
      g.write([&] { ++g.waiting; });
      EXPECT_TRUE(g.wait([&] { return !g.shut; }));
      g.write([&] { --g.waiting; });
    }
    bool fails = g.read(
        [&] { return (!spends.empty() && g.spends_fail) || (!settles.empty() && g.settles_fail); });
    return fails ? fail("planted") : inner_->commit(spends, settles);
  }
  result<change_state> state(const token_id& t) override { return inner_->state(t); }
  result<uint64_t> count(const hash32& key_id) override { return inner_->count(key_id); }
  result<bool> drop_some(const hash32& key_id) override { return inner_->drop_some(key_id); }

 private:
  std::unique_ptr<spend_ledger> inner_;
  std::shared_ptr<ledger_gate> gate_;
};

/// What HTTP tells the gateway, when the test lets it.
class held_door final : public http_handler {
 public:
  explicit held_door(std::shared_ptr<face_queue> queue) : queue_(std::move(queue)) {}
  void arrived(http_server& from, http_request r) override {
    auto kept = std::make_shared<http_request>(std::move(r));
    tell([this, &from, kept] { queue_->arrived(from, std::move(*kept)); });
  }
  void left(uint64_t id) override {
    ends_.fetch_add(1);
    tell([this, id] { queue_->left(id); });
  }
  void drained(uint64_t id, size_t bytes) override {
    tell([this, id, bytes] { queue_->drained(id, bytes); });
  }
  void sent(uint64_t id) override {
    ends_.fetch_add(1);
    tell([this, id] { queue_->sent(id); });
  }

  void hold() {
    std::lock_guard guard(mutex_);
    held_ = true;
  }
  void let_go() {
    std::lock_guard guard(mutex_);
    held_ = false;
    for (auto& t : waiting_) t();
    waiting_.clear();
  }
  /// Requests that had their last word, whether the gateway knows or not.
  uint32_t ends() const { return ends_; }

 private:
  void tell(std::function<void()> what) {
    std::lock_guard guard(mutex_);
    held_ ? waiting_.push_back(std::move(what)) : what();
  }
  std::shared_ptr<face_queue> queue_;
  std::mutex mutex_;
  bool held_ = false;
  std::vector<std::function<void()>> waiting_;
  std::atomic<uint32_t> ends_{0};
};

/// What the gateway said to scheduler, directory and the request's actor.
struct desk : blackboard {
  struct place {
    uint64_t request;
    bytes node;
  };
  struct submit {
    uint64_t request;
    bytes sealed, token;
  };
  std::vector<place> places;
  std::vector<submit> submits;
  std::vector<uint64_t> cancels;
  uint32_t token_keys = 0;  // that the directory was told last
  uint32_t credit = 0;
  std::map<std::string, uint64_t> counts;
  std::string note;
};
using desk_at = std::shared_ptr<desk>;

inline bytes kept(capnp::Data::Reader d) { return copy_of(bytes_of(d)); }

inline scheduler_actor::behavior_type desk_scheduler(scheduler_actor::pointer, const desk_at& d) {
  return {
      [d](const wire<schema::Place>& m) {
        (void)bool(unpack(m, [&](schema::Place::Reader r) {
          d->write([&] { d->places.push_back({r.getRequest(), kept(r.getNode())}); });
        }));
      },
      [d](const wire<schema::Submit>& m) {
        (void)bool(unpack(m, [&](schema::Submit::Reader r) {
          d->write([&] {
            d->submits.push_back({r.getRequest(), kept(r.getSealed()), kept(r.getToken())});
          });
        }));
      },
      [d](const wire<schema::Cancel>& m) {
        (void)bool(unpack(m, [&](schema::Cancel::Reader r) {
          d->write([&] { d->cancels.push_back(r.getRequest()); });
        }));
      },
      [](const wire<schema::Release>&) {},
      [](const wire<schema::EngineState>&) {},
      [](const wire<schema::EngineLoad>&) {},
      [](const wire<schema::Drain>&) {},
      [](const wire<schema::Leave>&) {},
      [](const wire<schema::NodeKey>&) {},
      [](const wire<schema::LoadsAsk>&) { return wire<schema::Loads>(); },
  };
}

inline directory_actor::behavior_type desk_directory(directory_actor::pointer, const desk_at& d) {
  return {
      [](const wire<schema::Join>&) { return wire<schema::Joined>(); },
      [](const wire<schema::EngineState>&) {},
      [](const wire<schema::EngineEnded>&) {},
      [](const wire<schema::NodeKey>&) {},
      [d](const wire<schema::TokenKeys>& m) {
        (void)bool(unpack(m, [&](schema::TokenKeys::Reader r) {
          d->write([&] { d->token_keys = r.getKeys().size(); });
        }));
      },
      [d](const wire<schema::ServiceState>& m) {
        (void)bool(unpack(m, [&](schema::ServiceState::Reader r) {
          d->write([&] {
            d->note = r.getNote().cStr();
            for (auto n : r.getCounts()) d->counts[n.getName().cStr()] = n.getNumber();
          });
        }));
      },
      [](const wire<schema::ControlAsk>&) { return wire<schema::ControlAnswer>(); },
      [](tick) {},
  };
}

inline request_actor::behavior_type desk_request(request_actor::pointer, const desk_at& d) {
  return {
      [d](const wire<schema::Credit>& m) {
        (void)bool(unpack(
            m, [&](schema::Credit::Reader r) { d->write([&] { d->credit += r.getPieces(); }); }));
      },
      [](const wire<schema::Cancel>&) {},
      [](stirred) {},
      [](tick) {},
  };
}

struct house_config final : caf::actor_system_config {
  house_config() {
    set("scheduler.max-threads", size_t{2});
    add_message_types<caf::id_block::lethe_messages>();
  }
};

/// A token and the request for its change.
struct payment_of_test {
  private_token token;
  token_request change;
  token_id id() const { return {token.key_id, token.nonce}; }
};

inline token_request change_request(const token_key& key) {
  return pending_token::make(key, a_challenge.digest())->request();
}
inline payment_of_test pay(size_t key = 0) {
  return {token_under(key_of_test(key)), change_request(key_of_test(key).published())};
}

/// What a client of the gateway was told.
struct told {
  int outer = 0;        // 0: the connection was cut
  std::string type;     // of a problem outside
  uint32_t status = 0;  // inside; 0: the answer does not open, or not to its end
  std::string content;
  std::map<std::string, std::string> fields;

  change_word change() const {
    auto at = fields.find(std::string(sealed_names::change_field));
    if (at == fields.end()) return change_word::absent;
    return at->second == sealed_names::due ? change_word::due : change_word::none;
  }
};

/// One request, sealed for the gateway, on a connection of its own.
class asked {
 public:
  asked(const std::string& address, const ohttp_config& to, ohttp_form form, bytes_view plain)
      : wire_(address) {
    auto sealer = ohttp_request_sealer::make(to, form);
    const size_t most = limits::chunk_plain_bytes_max;
    for (; form == ohttp_form::chunked && plain.size() > most; plain = plain.subspan(most)) {
      EXPECT_TRUE(sealer->seal(plain.first(most), false, message_));
    }
    EXPECT_TRUE(sealer->seal(plain, true, message_));
    opener_.emplace(*sealer->answer());
    auto type = form == ohttp_form::chunked ? ohttp_names::chunked_request : ohttp_names::request;
    EXPECT_TRUE(
        wire_.send("POST / HTTP/1.1\r\nHost: gateway\r\nContent-Type: " + std::string(type) +
                   "\r\nContent-Length: " + std::to_string(message_.size()) + "\r\n\r\n"));
    sends_ = wire_.send(as_text(message_));
  }
  /// All of it, as it comes.
  told end() {
    head_once();
    while (next_piece()) {
    }
    return said_;
  }
  /// Until so much of an answer's content is here.
  std::string content(size_t bytes) {
    head_once();
    while (content_.size() < bytes && next_piece()) {
    }
    return std::string(content_);
  }
  void leave() { wire_.reset(); }
  size_t bytes() const { return message_.size(); }
  bool was_taken() const { return sends_; }

 private:
  void head_once() {
    if (head_) return;
    head_ = wire_.take_head();
    said_.outer = head_->status;
    if (head_->status == 200) return;
    auto body = wire_.take(std::strtoul(head_->field("Content-Length").c_str(), nullptr, 10));
    auto at = body.find("\"type\":\"");
    if (at != body.npos) said_.type = body.substr(at + 8, body.find('"', at + 8) - at - 8);
  }
  bool next_piece() {
    if (said_.outer != 200 || over_) return false;
    auto length = head_->field("Content-Length");
    auto piece = length.empty() ? wire_.take_chunk() : wire_.take(std::stoul(length));
    if (!piece.empty()) opened_ = opened_ && bool(opener_->push(as_bytes(piece), plain_));
    over_ = piece.empty() || !length.empty();
    if (over_) opened_ = opened_ && bool(opener_->finish(plain_));
    opened_ = opened_ && bool(reader_.feed(plain_, content_));
    plain_.clear();
    if (!over_ || !opened_ || !reader_.finish()) return !over_;
    said_.status = reader_.status();
    said_.content = content_;
    for (const auto& f : reader_.fields()) said_.fields[std::string(f.name)] = std::string(f.value);
    return false;
  }

  http_test::client wire_;
  std::vector<std::byte> message_;
  std::optional<ohttp_answer_opener> opener_;
  bool sends_ = false, opened_ = true, over_ = false;
  std::optional<http_test::reply> head_;
  std::pmr::string plain_, content_;
  bhttp_response_reader reader_{std::pmr::get_default_resource()};
  told said_;
};

class gateway_house {
 public:
  struct options {
    uint32_t candidates = 1;
    http_limits http = {};
    spend_bounds bounds = {};
  };
  gateway_house() : gateway_house(options{}) {}
  explicit gateway_house(options with) : with_(std::move(with)) {
    EXPECT_TRUE(issuer_keys.add(copy_of_key(key_of_test(0)), now_s() - 1000));
    EXPECT_TRUE(issuer_keys.add(copy_of_key(key_of_test(1)), now_s() + next_token_key_s));
    for (auto& n : nodes) n.emplace(*node_key::make());
    start_issuer();
    start();
  }
  ~gateway_house() {
    end();
    issuer_server.reset();
  }

  static constexpr uint64_t next_token_key_s = 50'000;

  // --- its life
  void start() {
    system_ = std::make_unique<caf::actor_system>(system_config_);
    auto publish = publisher::open({.folder = folder / "gateway",
                                    .log = a_challenge.origin,
                                    .origin = a_challenge.origin,
                                    .issuer = a_challenge.issuer,
                                    .candidates = with_.candidates});
    ASSERT_TRUE(publish) << publish.why().text;
    auto ledger = open_sqlite_spends({.file = folder / "spends.db"});
    ASSERT_TRUE(ledger) << ledger.why().text;
    auto client = http_client::start({.answer_ms = 5'000}, {});
    ASSERT_TRUE(client) << client.why().text;
    store = std::make_shared<spend_store>(std::make_unique<gated_ledger>(*std::move(ledger), gate),
                                          with_.bounds);
    queue_ = std::make_shared<face_queue>();
    door.emplace(queue_);
    server_ = http_test::serve(*door, with_.http);
    scheduler_ = system_->spawn(desk_scheduler, at);
    directory_ = system_->spawn(desk_directory, at);
    request_ = system_->spawn(desk_request, at);
    gateway_setup setup{.queue = queue_,
                        .publish = *std::move(publish),
                        .spends = store,
                        .client = *std::move(client),
                        .issuer = {.origin = issuer_origin_, .secret = "shared"},
                        .now_s = [this] { return now_s(); },
                        .trace = &trace_};
    gateway_ = system_->spawn(gateway, setup, scheduler_, directory_);
    caf::actor_cast<caf::actor>(gateway_)->attach_functor([queue = queue_] { queue->close(); });
    EXPECT_TRUE(at->wait([&] { return at->token_keys > 0; })) << "the issuer's keys did not come";
    learn_keys();
  }
  /// The process dies: nobody hears anything any more.
  void die() {
    queue_->close();
    end();
  }
  void end() {
    if (!system_) return;
    gate->write([&] { gate->shut = gate->spends_fail = gate->settles_fail = false; });
    for (const auto& a :
         {caf::actor_cast<caf::actor>(gateway_), caf::actor_cast<caf::actor>(scheduler_),
          caf::actor_cast<caf::actor>(directory_), caf::actor_cast<caf::actor>(request_)})
      caf::anon_send_exit(a, caf::exit_reason::kill);
    gateway_ = nullptr;
    scheduler_ = nullptr;
    directory_ = nullptr;
    request_ = nullptr;
    system_.reset();
    server_.reset();
    store.reset();
  }
  /// The gateway hears of it soon.
  void break_scheduler() const { caf::anon_send_exit(scheduler_, caf::exit_reason::kill); }

  /// As if it had ended before anybody watched it.
  void end_request() const {
    caf::scoped_actor self(*system_);
    caf::anon_send_exit(request_, caf::exit_reason::unknown);
    self->wait_for(request_);
  }

  // --- what its client does
  void learn_keys() {
    auto got =
        http_test::client(*server_).ask(http_test::get(std::string(ohttp_names::gateway_path)));
    EXPECT_EQ(got.status, 200);
    keys = *read_ohttp_keys(as_bytes(got.body));
  }
  asked ask(std::string_view method, std::string_view path, std::span<const bhttp_field> fields,
            std::string_view content, ohttp_form form = ohttp_form::chunked) const {
    std::pmr::string plain;
    EXPECT_TRUE(write_request({.method = method,
                               .authority = a_challenge.origin,
                               .path = path,
                               .fields = fields,
                               .content = content},
                              plain));
    return asked(server_->bound()[0].address, keys.front(), form, as_bytes(plain));
  }
  asked ask(const payment_of_test& with, ohttp_form form = ohttp_form::chunked, size_t to = 1,
            size_t content_bytes = 100) const {
    std::vector<node_public> drawn;
    for (size_t i = 0; i < to; ++i) drawn.push_back(nodes[i]->published());
    auto sealed = seal_request(random_bytes(content_bytes, 1), drawn, 1, with.token.hash());
    return ask_sealed(with, as_text(sealed->message), form);
  }
  asked ask_sealed(const payment_of_test& with, std::string_view message,
                   ohttp_form form = ohttp_form::chunked) const {
    const auto authorization = write_authorization(with.token);
    const std::string change = base64url(with.change.to_bytes());
    const bhttp_field fields[] = {{"content-type", sealed_names::request},
                                  {"authorization", authorization.text()},
                                  {sealed_names::change_field, change}};
    return ask("POST", sealed_names::sealed_path, fields, message, form);
  }
  asked claim(const payment_of_test& of) const {
    std::string content(as_text(of.token.to_bytes()));
    content += as_text(of.change.to_bytes());
    const bhttp_field type{"content-type", sealed_names::claim};
    return ask("POST", sealed_names::change_path, {&type, 1}, content);
  }
  asked look(std::string_view path) const { return ask("GET", path, {}, {}); }

  // --- what the cluster does
  uint64_t wait_place(size_t count = 1) const {
    EXPECT_TRUE(at->wait([&] { return at->places.size() >= count; })) << "nothing is to be placed";
    return at->read([&] { return at->places.size() < count ? 0 : at->places[count - 1].request; });
  }
  uint64_t wait_submit(size_t count = 1) const {
    EXPECT_TRUE(at->wait([&] { return at->submits.size() >= count; })) << "nothing was submitted";
    return at->read(
        [&] { return at->submits.size() < count ? 0 : at->submits[count - 1].request; });
  }
  void place(uint64_t request) const {
    say<schema::Placed>([&](schema::Placed::Builder b) {
      b.setRequest(request);
      b.initAt().setEngine(0);
    });
  }
  void refuse(uint64_t request, schema::Refusal why) const {
    say<schema::Placed>([&](schema::Placed::Builder b) {
      b.setRequest(request);
      b.initRefused().setReason(why);
    });
  }
  void answer(uint64_t request, std::string_view piece, bool last = false) const {
    say<schema::Answer>([&](schema::Answer::Builder b) {
      b.setRequest(request);
      b.setLast(last);
      b.setSealed(data_of(as_bytes(piece)));
    });
  }
  void lose(uint64_t request, schema::LossReason why, bytes_view refusal = {}) const {
    say<schema::Lost>([&](schema::Lost::Builder b) {
      b.setRequest(request);
      b.setReason(why);
      b.setRefusal(data_of(refusal));
    });
  }
  void publish_roster(uint32_t number) const {
    say<schema::Publish>([&](schema::Publish::Builder b) {
      b.setRoster(number);
      auto one = b.initNodes(1)[0];
      one.setNode(data_of(nodes[0]->published().to_bytes()));
      one.setCapacity(4);
      one.setModel("m");
    });
  }
  /// To a node that has it.
  uint64_t dispatched(size_t count = 1) const {
    place(wait_place(count));
    return wait_submit(count);
  }

  // --- what is seen of it
  /// The gateway has done all that it was told before.
  void barrier() const {
    caf::scoped_actor self(*system_);
    self->request(gateway_, http_test::patience, stirred::value)
        .receive([] {}, [](caf::error&) { ADD_FAILURE() << "the gateway is gone"; });
  }
  void tick_now() const {
    caf::scoped_actor self(*system_);
    self->request(gateway_, http_test::patience, tick::value)
        .receive([] {}, [](caf::error&) { ADD_FAILURE() << "the gateway is gone"; });
    self->request(directory_, http_test::patience, tick::value).receive([] {}, [](caf::error&) {});
  }
  uint64_t count(const std::string& name) const {
    tick_now();
    return at->read([&] { return at->counts[name]; });
  }
  std::string note() const {
    tick_now();
    return at->read([&] { return at->note; });
  }
  /// No exchange is open.
  bool empties() const {
    return eventually([&] { return count("open") == 0; });
  }
  change_state state_of(const payment_of_test& p) const {
    auto state = change_of(*store, p.id());
    EXPECT_TRUE(state) << state.why().text;
    return state ? *state : change_state{};
  }
  /// Once the scheduler has taken all that the gateway has sent it.
  size_t cancels() const {
    caf::scoped_actor self(*system_);
    self->request(scheduler_, http_test::patience, wire<schema::LoadsAsk>())
        .receive([](const wire<schema::Loads>&) {}, [](caf::error&) {});
    return at->read([&] { return at->cancels.size(); });
  }
  uint64_t now_s() const { return unix_s() + shift_s; }

  temporary_folder folder;
  desk_at at = std::make_shared<desk>();
  std::shared_ptr<ledger_gate> gate = std::make_shared<ledger_gate>();
  std::shared_ptr<spend_store> store;
  std::optional<held_door> door;
  std::vector<ohttp_config> keys;  // of the gateway
  std::array<std::optional<node_key>, 2> nodes;
  std::atomic<uint64_t> shift_s{0}, shift_ns{0};
  token_issuer issuer_keys;
  std::atomic<int> issuer_says{200};  // to claims
  std::unique_ptr<http_server> issuer_server;

  const http_server& server() const { return *server_; }

 private:
  static std::string base64url(bytes_view b) {
    std::string text(base64url_chars(b.size()), '\0');
    write_base64url(b, text);
    return text;
  }
  template <class Schema, class Fill>
  void say(Fill fill) const {
    caf::send_as(request_, gateway_, pack<Schema>({}, fill));
  }

  void start_issuer() {
    issuer_server = http_test::serve(issuer_program_);
    issuer_origin_ = read_url("http://" + issuer_server->bound()[0].address + "/")->first;
  }
  void issue(http_server& s, http_request& r) {
    if (r.head.path == token_directory_path) {
      auto text = write_directory(issuer_keys.directory("/token-request", now_s()));
      return s.answer(r.id, {.content_type = std::string(token_directory_media)}, text);
    }
    if (issuer_says != 200 || r.head.field("authorization") != "Bearer shared")
      return s.answer(r.id, {.status = issuer_says == 200 ? 401 : issuer_says.load()}, "");
    auto both = as_bytes(r.body);
    auto claim = issuer_keys.claim_change(both.first(private_token::wire_bytes),
                                          both.subspan(private_token::wire_bytes),
                                          a_challenge.digest(), now_s());
    if (!claim) return s.answer(r.id, {.status = 403}, "");
    auto signed_by = issuer_keys.sign(*claim, now_s());
    s.answer(r.id,
             {.status = int(signed_by.status), .content_type = std::string(token_response_media)},
             as_text(signed_by.body));
  }

  options with_;
  house_config system_config_;
  tracer trace_{{.mode = trace_mode::off, .now = [this] {
                   auto since = std::chrono::steady_clock::now().time_since_epoch();
                   return uint64_t(std::chrono::nanoseconds(since).count()) + shift_ns;
                 }}};
  http_test::program issuer_program_{[this](auto& s, auto& r) { issue(s, r); }};
  http_origin issuer_origin_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<face_queue> queue_;
  std::unique_ptr<http_server> server_;
  scheduler_actor scheduler_;
  directory_actor directory_;
  request_actor request_;
  gateway_actor gateway_;
};

}  // namespace lethe::test
