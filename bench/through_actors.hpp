#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <latch>

#include "actors/cluster/engine_actor.hpp"
#include "actors/cluster/scheduler.hpp"
#include "bench/spread.hpp"
#include "runtime/bhttp/request.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/crypto/random.hpp"
#include "simdjson.h"

// Requests through the actors, as they go in a cluster, but without sockets: a client that asks a
// scheduler, seals to an engine, and takes sealed pieces.
namespace lethe::bench {

constexpr uint32_t credit_batch = limits::answer_window / 4;

/// Passes on that the engine is ready, as the directory does.
inline directory_actor::behavior_type directory_stand_in(directory_actor::pointer self,
                                                         scheduler_actor to, std::latch* ready) {
  return {
      [](const wire<schema::Join>&) { return wire<schema::Joined>{}; },
      [=](const wire<schema::EngineState>& m) {
        auto read = unpack(m, [=](schema::EngineState::Reader r) {
          if (r.getPhase() == schema::Phase::READY) ready->count_down();
        });
        check(bool(read));
        self->delegate(to, m);
      },
      [](const wire<schema::EngineEnded>&) {},
      [](const wire<schema::NodeKey>&) {},
      [](const wire<schema::TokenKeys>&) {},
      [](const wire<schema::ServiceState>&) {},
      [](const wire<schema::ControlAsk>&) { return wire<schema::ControlAnswer>{}; },
      [](tick) {},
  };
}

struct piece {
  uint64_t sent_ns;
  std::vector<std::byte> sealed;
  bool last;
};

/// One stream: what it asked and was told. Opened when nothing runs.
struct stream {
  std::string body;
  std::optional<answer_opener> opener;
  std::vector<piece> pieces;
  uint32_t taken = 0;
};

struct client_setup {
  scheduler_actor scheduler;
  tracer* trace;
  std::vector<stream>* streams;
  std::latch* done;
};

struct client_state {
  clerk by;
  std::unordered_map<uint64_t, stream*> of;
};

inline void seal_to(stream& s, schema::Placed::At::Reader at, schema::Submit::Builder b) {
  auto node = node_public::from_bytes(bytes_of(at.getNode()));
  check(bool(node));
  std::pmr::string plain;
  bhttp_field type{"content-type", "application/json"};
  check(bool(write_request(
      {.authority = "lethe", .path = "/v1/completions", .fields = {&type, 1}, .content = s.body},
      plain)));
  auto sealed = seal_request(as_bytes(plain), {&*node, 1}, at.getEpoch(), {});
  check(bool(sealed));
  s.opener.emplace(std::move(sealed->answer));
  b.setEngine(at.getEngine());
  b.setEpoch(at.getEpoch());
  b.setSealed(data_of(sealed->message));
}

/// Takes pieces as they come and gives credit as a face does.
inline face_actor::behavior_type client(face_actor::stateful_pointer<client_state> self,
                                        client_setup c) {
  auto& s = self->state;
  s.by = clerk(c.trace, actor_kind::face);
  for (auto& one : *c.streams) {
    uint64_t id = 0;
    fill_random(std::as_writable_bytes(std::span(&id, 1)));
    s.of[id] = &one;
    self->send(c.scheduler, s.by.write<schema::Place>(id, [id](auto b) { b.setRequest(id); }));
  }
  return {
      [self, c](const wire<schema::Placed>& m) {
        auto read = unpack(m, [&](schema::Placed::Reader r) {
          check(r.isAt());
          uint64_t id = r.getRequest();
          self->send(c.scheduler, self->state.by.write<schema::Submit>(id, [&](auto b) {
            b.setRequest(id);
            seal_to(*self->state.of.at(id), r.getAt(), b);
          }));
        });
        check(bool(read));
      },
      [self, c](const wire<schema::Answer>& m) {
        self->state.by.read(m, [&](schema::Answer::Reader r) {
          uint64_t id = r.getRequest();
          stream& one = *self->state.of.at(id);
          auto sealed = bytes_of(r.getSealed());
          one.pieces.push_back({m.stamp.sent_ns, {sealed.begin(), sealed.end()}, r.getLast()});
          if (r.getLast()) return c.done->count_down();
          if (++one.taken < credit_batch) return;
          one.taken = 0;
          self->send(sender_of<request_actor>(self),
                     self->state.by.write<schema::Credit>(id, [id](schema::Credit::Builder b) {
                       b.setRequest(id);
                       b.setPieces(credit_batch);
                     }));
        });
      },
      [](const wire<schema::Lost>&) { check(false); },
      [](stirred) {},
      [](tick) {},
  };
}

/// The text that a stream's pieces hold.
inline std::string text_of(stream& s) {
  std::pmr::string opened, content;
  bhttp_response_reader reader(std::pmr::get_default_resource());
  for (const auto& p : s.pieces) check(bool(s.opener->push(p.sealed, opened)));
  check(bool(s.opener->finish()) && bool(reader.feed(opened, content)) && bool(reader.finish()));
  check(reader.status() == 200);
  std::string text;
  simdjson::dom::parser parser;
  std::string_view rest = content;
  for (size_t end; (end = rest.find("\n\n")) != rest.npos; rest.remove_prefix(end + 2)) {
    std::string event(rest.substr(0, end));
    if (event == "data: [DONE]") return text;
    auto json = parser.parse(event.substr(6));
    text += std::string_view(json["choices"].at(0)["text"].get_string().value());
  }
  check(false);  // no end
  return {};
}

/// What the engine says to a prompt alone, without any actor.
inline std::string alone(engine& e, const served_model& m, const std::string& prompt,
                         uint32_t tokens) {
  auto made = request::make(size_t{64} << 20);
  check(bool(made));
  request& r = **made;
  auto ids = m.words.encode(prompt, {}, std::pmr::get_default_resource());
  check(bool(ids));
  uint32_t vocab = m.model.shape().vocab;
  check(bool(r.ask({.prompt = *ids, .max_tokens = tokens, .how = {.temperature = 0}}, vocab)));
  check(bool(e.submit(r)));
  while (!r.gone()) r.wait(r.events());
  std::string text(m.words.decode(r.choice(0).ids, true, r.memory()));
  r.forget();
  return text;
}

inline std::string prompt_of(uint32_t i) {
  return fmt::format("Tell me a story about {} dogs.", i + 2);
}

/// One engine and its scheduler in an actor system of their own.
class small_cluster {
 public:
  small_cluster(std::shared_ptr<const served_model> model, const engine_config& config,
                tracer_config recording, node_config& node)
      : trace_(std::move(recording)), model_(std::move(model)), sys_(node) {
    scheduler_ = sys_.spawn(scheduler, &trace_);
    directory_ = sys_.spawn(directory_stand_in, scheduler_, &ready_);
    engine_setup setup{.tokens_only = false, .trace = &trace_};
    setup.open = [this, config](const opening&) -> result<opened_engine> {
      auto e = engine::start(model_->weights->weights(), config);
      if (!e) return e.why();
      serving_ = e->get();
      return opened_engine{model_, *std::move(e)};
    };
    engine_ = sys_.spawn<caf::detached>(run_engine, std::move(setup), directory_);
    ready_.wait();
  }
  ~small_cluster() {
    caf::anon_send_exit(engine_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(directory_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(scheduler_, caf::exit_reason::user_shutdown);
  }

  engine& serving() { return *serving_; }
  const served_model& model() const { return *model_; }
  const tracer& trace() const { return trace_; }

  /// Streams of so many tokens each, all at once, until the last has ended.
  std::vector<stream> run(uint32_t streams, uint32_t tokens) {
    std::vector<stream> all(streams);
    for (uint32_t i = 0; i < streams; ++i)
      all[i].body =
          fmt::format(R"({{"model":"bench","prompt":"{}","max_tokens":{},"temperature":0,)"
                      R"("ignore_eos":true,"stream":true}})",
                      prompt_of(i), tokens);
    std::latch done(streams);
    auto asker = sys_.spawn(client, client_setup{scheduler_, &trace_, &all, &done});
    done.wait();
    caf::anon_send_exit(asker, caf::exit_reason::user_shutdown);
    return all;
  }

  /// Whether each stream says in company, through the actors, what the engine says to it alone.
  bool says_the_same(uint32_t streams, uint32_t tokens) {
    auto said = run(streams, tokens);
    for (uint32_t i = 0; i < streams; ++i)
      if (text_of(said[i]) != alone(*serving_, *model_, prompt_of(i), tokens)) return false;
    return true;
  }

 private:
  tracer trace_;
  std::shared_ptr<const served_model> model_;
  caf::actor_system sys_;
  std::latch ready_{1};
  engine* serving_ = nullptr;
  scheduler_actor scheduler_;
  directory_actor directory_;
  engine_actor engine_;
};

}  // namespace lethe::bench
