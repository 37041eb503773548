#include "runtime/audit/answer_wire.hpp"

#include <cmath>

#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/gateway/outer_answer.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/serve/answer_ticks.hpp"

namespace lethe::audit {

namespace {

constexpr uint32_t epoch = 1, max_tokens = 4096;
constexpr uint64_t wiping_us = 200;
constexpr double step_jitter = 0.1, load_least = 0.9, load_most = 1.1;  // of a step's time
constexpr double way_ms = 2, way_jitter_ms = 0.3;

double uniform(std::mt19937_64& dice, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(dice);
}

struct nobody final : request_watcher {
  void changed() override {}
};

/// Ids that stand for words, so that a piece has the length of what it says.
std::vector<uint32_t> plain_ids(const served_model& model) {
  std::vector<uint32_t> ids;
  const uint32_t vocab = std::min(model.words.vocab_size(), model.model.shape().vocab);
  for (uint32_t id = 0; id < vocab; ++id) {
    auto text = model.words.token_bytes(id);
    bool readable = !text.empty() && std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ' ';
    });
    if (readable && !model.words.is_special(id)) ids.push_back(id);
  }
  return ids;
}

ohttp_exchange some_exchange() {
  ohttp_exchange x{.form = ohttp_form::chunked};
  x.enc.resize(32);
  fill_random(x.enc);
  x.secret = key_bytes(answer_nonce_bytes(x.suite));
  fill_random(x.secret.bytes());
  return x;
}

}  // namespace

std::vector<known_answer> make_answers(const served_model& model, uint32_t count,
                                       uint32_t tokens_most, uint64_t seed) {
  constexpr double tokens_least = 8;
  std::mt19937_64 dice(seed);
  const auto words = plain_ids(model);
  check(!words.empty() && tokens_most < max_tokens);
  std::vector<known_answer> all(count);
  for (auto& a : all) {
    a.prompt_tokens = uint32_t(uniform(dice, 10, 120));
    a.ids.resize(size_t(std::exp(uniform(dice, std::log(tokens_least), std::log(tokens_most)))));
    for (uint32_t& id : a.ids) id = words[dice() % words.size()];
  }
  return all;
}

/// One answer on its way. Times are microseconds of the wall clock.
struct answer_wire::exchange {
  const known_answer& said;
  answer_shape shape;
  std::mt19937_64& dice;
  uint64_t now_us, asked_us;
  double load;  // of the machine, this time
  sealed_call* call = nullptr;
  outer_answer outer{some_exchange()};
  uint64_t due_us = 0;  // the next tick
  seen_answer seen;
  result<void> good;

  uint64_t tick_us() const { return uint64_t{shape.tick_ms} * 1000; }
  double since_asked_ms() const { return double(now_us - asked_us) / 1000; }

  void compute(const step_plan& plan) {
    if (plan.tokens == 0) return pass(now_us + wiping_us);
    const double ms = said.step_ms + said.prefill_ms_a_token * (plan.tokens - 1);
    const double by = load * std::exp(std::normal_distribution<double>(0, step_jitter)(dice));
    pass(now_us + uint64_t(1000 * ms * by));
  }
  /// What is due meanwhile leaves.
  void pass(uint64_t until_us) {
    while (shape.ticks() && call && due_us <= until_us && !call->said_all()) {
      now_us = due_us;
      send();
      due_us = next_tick(uint64_t{0}, due_us, tick_us());
    }
    now_us = std::max(now_us, until_us);
  }
  bool send() {
    std::vector<std::byte> piece, out;
    if (!good || !call->next(piece)) return false;
    seen.messages.push_back({since_asked_ms(), uint32_t(piece.size())});
    bhttp_field type{"content-type", sealed_names::response};
    if (!outer.begun()) good = outer.head(200, {&type, 1});
    auto text = as_text(piece);
    if (good) good = call->said_all() ? outer.end(text, out) : outer.content(text, out);
    const double way = way_ms + std::exponential_distribution<double>(1 / way_jitter_ms)(dice);
    const double before = seen.wire.empty() ? 0 : seen.wire.back().at_ms;
    seen.wire.push_back({std::max(before, since_asked_ms() + way), uint32_t(out.size())});
    const bool free = shape.ticks() ? call->forgotten() : call->said_all();
    if (free && seen.released_ms == 0) seen.released_ms = since_asked_ms();
    return true;
  }
};

result<std::unique_ptr<answer_wire>> answer_wire::make(std::shared_ptr<const served_model> model) {
  if (model->stop_ids.empty()) return fail("model: it has no token that ends an answer");
  std::unique_ptr<answer_wire> made(new answer_wire(model));
  auto engine = played_engine::make(model->model.shape().vocab, model->stop_ids.front(),
                                    [at = made.get()](const step_plan& plan) {
                                      if (at->now_) at->now_->compute(plan);
                                    });
  if (!engine) return engine.why();
  made->engine_ = *std::move(engine);
  made->engine_->set_clock([at = made.get()] { return at->now_ ? at->now_->now_us * 1000 : 0; });
  return made;
}

result<std::vector<std::byte>> answer_wire::sealed_request_for(const known_answer& said,
                                                               const node_public& to,
                                                               const answer_shape& shape) const {
  constexpr size_t bucket = 4096;
  std::vector<uint32_t> prompt(said.prompt_tokens, said.ids.front());
  auto body =
      fmt::format(R"({{"model":"{}","prompt":[{}],"max_tokens":{},"temperature":0,"stream":true}})",
                  model_->name, fmt::join(prompt, ","), max_tokens);
  std::pmr::string plain;
  bhttp_field type{"content-type", "application/json"};
  auto written = write_request(
      {.authority = "node", .path = "/v1/completions", .fields = {&type, 1}, .content = body},
      plain);
  if (!written) return written.why();
  plain.resize(std::max(plain.size(), bucket));
  auto sealed = seal_request(as_bytes(plain), {&to, 1}, epoch, hash32{}, shape.chunk_bytes);
  if (!sealed) return sealed.why();
  return std::move(sealed->message);
}

result<seen_answer> answer_wire::see(const known_answer& said, const answer_shape& shape,
                                     std::mt19937_64& dice) {
  auto key = node_key::make();
  if (!key) return key.why();
  const node_public node = key->published();
  auto service = std::make_shared<sealed_service>(
      sealed_service{{model_, engine_.get(), {}}, *std::move(key), epoch, {}, {}, shape});
  auto message = sealed_request_for(said, node, shape);
  if (!message) return message.why();
  const uint64_t came_us = 1'000'000 + dice() % 1'000'000;
  exchange x{.said = said,
             .shape = shape,
             .dice = dice,
             .now_us = came_us,
             .asked_us = came_us - uint64_t(1000 * (way_ms + uniform(dice, 0, way_jitter_ms))),
             .load = uniform(dice, load_least, load_most)};
  x.seen.request_bytes = uint32_t(message->size());
  now_ = &x;
  struct until_it_ends {
    exchange*& at;
    ~until_it_ends() { at = nullptr; }
  } ended{now_};
  engine_->play(said.ids);
  sealed_call::fault whose;
  auto opened = sealed_call::open(service, *message, {}, std::make_shared<nobody>(), whose);
  if (!opened) return opened.why();
  if ((*opened)->how() != sealed_call::fate::served)
    return fail("answer wire: the node did not take a request that was made for it");
  x.call = opened->get();
  if (shape.ticks()) x.due_us = next_tick(uint64_t{0}, x.now_us, x.tick_us());
  if (auto whole = drive(x); !whole) return whole.why();
  return std::move(x.seen);
}

/// As the request's actor does: it is stirred when the engine has something, and by its tick.
result<void> answer_wire::drive(exchange& x) {
  while (!x.call->said_all() && x.good) {
    const auto did = engine_->turn();
    x.call->pump();
    bool said = false;
    if (x.shape.ticks() && did != step_loop::turned::settled) {
      x.pass(x.due_us);
      said = true;
    }
    while (!x.shape.ticks() && x.send()) said = true;
    const bool endless = x.seen.messages.size() > 4 * max_tokens;
    if (endless || (!said && did != step_loop::turned::settled))
      return fail("answer wire: the answer stopped before its end");
  }
  return x.good;
}

}  // namespace lethe::audit
