// What a decode step costs besides its arithmetic, measured through the actors: requests are placed
// by a scheduler, opened and answered by their own actors, and each piece is sealed and sent.
// Answers are checked first: each must say what the engine says to it alone.
// Prints one line of JSON for one stream and one for many.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <latch>

#include "actors/cluster/engine_actor.hpp"
#include "actors/cluster/node.hpp"
#include "actors/cluster/scheduler.hpp"
#include "runtime/bhttp/request.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/crypto/random.hpp"
#include "simdjson.h"

namespace lethe {
namespace {

constexpr double limit_us = 30;
constexpr uint32_t credit_batch = limits::answer_window / 4;

/// One step of the log, in nanoseconds.
struct step_seen {
  size_t entries;
  uint32_t tokens;
  uint64_t submitted, done, arithmetic;
};

/// Keeps all steps; read when nothing runs.
class step_log final : public step_watcher {
 public:
  void stepped(const step_plan& plan, uint64_t submitted_ns, uint64_t done_ns) override {
    const auto& t = serving->ranks().rank(0).times();
    uint64_t all = t.embed + t.norm + t.qkv + t.rope + t.attention + t.o + t.gate_up + t.down +
                   t.head + t.comm;
    steps.push_back({plan.entries.size(), plan.tokens, submitted_ns, done_ns,
                     all - std::exchange(before_, all)});
  }
  const engine* serving = nullptr;
  std::vector<step_seen> steps;

 private:
  uint64_t before_ = 0;
};

/// Passes on that the engine is ready, as the directory does.
directory_actor::behavior_type directory_stand_in(directory_actor::pointer self, scheduler_actor to,
                                                  std::latch* ready) {
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

void seal_to(stream& s, schema::Placed::At::Reader at, schema::Submit::Builder b) {
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
face_actor::behavior_type client(face_actor::stateful_pointer<client_state> self, client_setup c) {
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
std::string text_of(stream& s) {
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
std::string alone(engine& e, const served_model& m, const std::string& prompt, uint32_t tokens) {
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

struct spread {
  double p10 = 0, median = 0, p90 = 0;
};

spread spread_of(std::vector<double> v) {
  if (v.empty()) return {};
  std::ranges::sort(v);
  return {v[v.size() / 10], v[v.size() / 2], v[v.size() * 9 / 10]};
}

struct cluster {
  std::shared_ptr<const served_model> model;
  step_log log;
  engine* serving = nullptr;
  scheduler_actor scheduler;
  engine_actor engine_handle;
};

std::string prompt_of(uint32_t i) { return fmt::format("Tell me a story about {} dogs.", i + 2); }

std::vector<stream> run(caf::actor_system& sys, cluster& c, tracer& trace, uint32_t streams,
                        uint32_t tokens) {
  std::vector<stream> all(streams);
  for (uint32_t i = 0; i < streams; ++i)
    all[i].body = fmt::format(
        R"({{"model":"bench","prompt":"{}","max_tokens":{},"temperature":0,"ignore_eos":true,"stream":true}})",
        prompt_of(i), tokens);
  std::latch done(streams);
  auto asker = sys.spawn(client, client_setup{c.scheduler, &trace, &all, &done});
  done.wait();
  caf::anon_send_exit(asker, caf::exit_reason::user_shutdown);
  return all;
}

/// Microseconds between the end of a step and the sending of the piece that it made.
std::vector<double> piece_delays(const std::vector<stream>& streams,
                                 const std::vector<step_seen>& steps) {
  std::vector<double> us;
  for (const auto& s : streams)
    for (const auto& p : s.pieces) {
      auto after = std::ranges::upper_bound(steps, p.sent_ns, {}, &step_seen::done);
      if (after == steps.begin() || p.last) continue;
      us.push_back(double(p.sent_ns - std::prev(after)->done) / 1000);
    }
  return us;
}

void report(uint32_t streams, const std::vector<stream>& said,
            const std::vector<step_seen>& steps) {
  std::vector<double> whole, arithmetic, rest, handover, loop;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const auto &s = steps[i], &next = steps[i + 1];
    // Decodes of the full company, one after the other.
    if (s.entries != streams || s.tokens != streams || next.tokens != streams) continue;
    whole.push_back(double(next.submitted - s.submitted) / 1000);
    arithmetic.push_back(double(s.arithmetic) / 1000);
    rest.push_back(whole.back() - arithmetic.back());
    handover.push_back(double(s.done - s.submitted - s.arithmetic) / 1000);
    loop.push_back(double(next.submitted - s.done) / 1000);
  }
  check(rest.size() >= 30);
  auto r = spread_of(rest);
  fmt::print(
      "{{\"what\":\"step\",\"streams\":{},\"steps\":{},\"step_us\":{:.1f},\"arithmetic_us\":{:.1f},"
      "\"rest_us\":{:.1f},\"rest_us_p10\":{:.1f},\"rest_us_p90\":{:.1f},\"handover_us\":{:.1f},"
      "\"loop_us\":{:.1f},\"piece_us\":{:.1f},\"limit_us\":{:.0f},\"of_limit\":{:.2f}}}\n",
      streams, rest.size(), spread_of(whole).median, spread_of(arithmetic).median, r.median, r.p10,
      r.p90, spread_of(handover).median, spread_of(loop).median,
      spread_of(piece_delays(said, steps)).median, limit_us, r.median / limit_us);
}

bool measure_streams(caf::actor_system& sys, cluster& c, tracer& trace, uint32_t streams,
                     uint32_t tokens) {
  std::vector<std::string> expected;
  for (uint32_t i = 0; i < streams; ++i)
    expected.push_back(alone(*c.serving, *c.model, prompt_of(i), tokens));
  run(sys, c, trace, streams, 16);
  c.log.steps.clear();
  auto said = run(sys, c, trace, streams, tokens);
  auto steps = c.log.steps;
  for (uint32_t i = 0; i < streams; ++i)
    if (text_of(said[i]) != expected[i]) return false;
  report(streams, said, steps);
  return true;
}

int measure(const std::string& path, engine_config config, uint32_t tokens, uint32_t streams,
            uint32_t workers) {
  auto node = node_config::make({.threads = workers});
  if (!node) return fmt::print(stderr, "{}\n", node.why().text), 1;
  cluster c;
  auto model = served_model::open({.path = path, .name = "bench"});
  if (!model) return fmt::print(stderr, "{}\n", model.why().text), 1;
  c.model = *model;
  config.watch = &c.log;
  tracer trace({.mode = trace_mode::allowed});
  std::latch ready(1);
  bool same = true;
  {
    caf::actor_system sys(**node);
    c.scheduler = sys.spawn(scheduler, &trace);
    auto directory = sys.spawn(directory_stand_in, c.scheduler, &ready);
    engine_setup setup{.trace = &trace};
    setup.open = [&c, &config](const load_progress&) -> result<opened_engine> {
      auto e = engine::start(c.model->weights->weights(), config);
      if (!e) return e.why();
      c.serving = e->get();
      c.log.serving = c.serving;
      return opened_engine{c.model, *std::move(e)};
    };
    c.engine_handle = sys.spawn<caf::detached>(run_engine, std::move(setup), directory);
    ready.wait();
    for (uint32_t n : {1u, streams}) same = same && measure_streams(sys, c, trace, n, tokens);
    caf::anon_send_exit(c.engine_handle, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(directory, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(c.scheduler, caf::exit_reason::user_shutdown);
    c.scheduler = nullptr;
    c.engine_handle = nullptr;
  }
  if (!same) fmt::print(stderr, "a stream says something else through the actors than alone\n");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app{"Measures what a decode step costs besides arithmetic", "step_bench"};
  std::string path;
  lethe::engine_config c{.threads = 1, .context = 1024};
  uint32_t tokens = 400, streams = 16, workers = 2;
  app.add_option("MODEL", path, "folder or GGUF file")->required();
  app.add_option("--tokens", tokens, "of each answer")->check(CLI::Range(64u, 900u));
  app.add_option("--streams", streams, "of the second line")->check(CLI::Range(1u, 64u));
  app.add_option("--threads", c.threads, "of the engine's rank");
  app.add_option("--workers", workers, "of the actor system")->check(CLI::Range(1u, 64u));
  CLI11_PARSE(app, argc, argv);
  return lethe::measure(path, c, tokens, streams, workers);
}
