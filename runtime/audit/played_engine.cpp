#include "runtime/audit/played_engine.hpp"

#include <cstdlib>

namespace lethe::audit {

class played_engine::played_ranks final : public step_ranks {
 public:
  explicit played_ranks(std::shared_ptr<script> of) : script_(std::move(of)) {}

  void submit(const step_plan& plan, const step_data& data) override {
    flights_.emplace_back(&plan, data);
  }
  result<void> wait_oldest() override {
    auto [plan, data] = flights_.front();
    flights_.pop_front();
    auto& s = *script_;
    if (s.while_computing) s.while_computing(*plan);
    for (uint32_t row = 0; row < plan->logit_rows; ++row) {
      float* logits = data.logits + size_t{row} * s.vocab;
      std::fill_n(logits, s.vocab, 0.f);
      logits[s.said < s.ids.size() ? s.ids[s.said++] : s.stop_id] = 10.f;
    }
    return {};
  }

 private:
  std::shared_ptr<script> script_;
  std::deque<std::pair<const step_plan*, step_data>> flights_;
};

result<std::unique_ptr<played_engine>> played_engine::make(uint32_t vocab, uint32_t stop_id,
                                                           waiting while_computing) {
  std::unique_ptr<played_engine> made(new played_engine);
  made->script_ = std::make_shared<script>(
      script{.vocab = vocab, .stop_id = stop_id, .while_computing = std::move(while_computing)});
  made->config_ = {.context = 8192, .running = 1, .queue = 1};
  made->plan_ = {.pages = 512,
                 .logit_rows = 1,
                 .running_max = 1,
                 .queue_max = 1,
                 .context_max = made->config_.context};
  auto planner = make_planner(made->plan_);
  if (!planner) return planner.why();
  auto buffers = step_buffers::make(1, made->plan_.step_tokens, made->plan_.logit_rows, vocab);
  if (!buffers) return buffers.why();
  made->loop_ = std::make_unique<step_loop>(*std::move(planner),
                                            std::make_unique<played_ranks>(made->script_),
                                            *std::move(buffers), vocab);
  return made;
}

played_engine::~played_engine() {
  if (!loop_) return;
  loop_->box.put({.kind = letter::what::shutdown});
  while (turn() != step_loop::turned::over) {
  }
}

void played_engine::play(std::vector<uint32_t> ids) {
  script_->ids = std::move(ids);
  script_->said = 0;
}

result<void> played_engine::fits(const request& r) const { return check_ask(plan_, ask_of(r, 0)); }

result<void> played_engine::submit(request& r) {
  if (auto ok = fits(r); !ok) return ok.why();
  loop_->outstanding.fetch_add(1);
  r.set_id(next_id_++);
  loop_->box.put({.kind = letter::what::submit, .id = r.id(), .from = &r, .at_ns = loop_->now()});
  return {};
}

void played_engine::stop(request& r, uint32_t choice) {
  loop_->box.put({.kind = letter::what::stop, .id = r.id(), .choice = choice});
}

void played_engine::cancel(request& r) {
  loop_->box.put({.kind = letter::what::cancel, .id = r.id()});
  while (!r.gone()) turn();
}

const grid& played_engine::ranks() const {
  check(false);  // there are none to look at
  std::abort();
}

}  // namespace lethe::audit
