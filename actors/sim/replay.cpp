#include "actors/sim/replay.hpp"

#include "actors/sim/message_turns.hpp"
#include "actors/sim/stage.hpp"

#include <numeric>

namespace lethe::sim {

namespace {

constexpr uint32_t prompt_tokens_max = 1024, page_tokens = 64, running_max = 4096;
// An answer's check reads all that came before each token: the square of this.
constexpr uint32_t answer_tokens_max = 16384;
constexpr uint32_t sealed_bytes_max = limits::sealed_plain_bytes_max / 2;
constexpr uint64_t end_within_ns = 600'000'000'000;  // after the last recorded message

/// Pieces of a streamed answer beside those of its tokens: two for its end, and its receipt's.
constexpr uint32_t pieces_around = 3;

wish wish_for(const scheduled_request& r, const std::vector<uint32_t>& letters) {
  bool streams = r.pieces > pieces_around;
  wish w{.id = r.id,
         .sealed_bytes = std::min(r.sealed_bytes, sealed_bytes_max),
         .max_tokens = streams ? std::min(r.pieces - pieces_around, answer_tokens_max) : 8,
         .stream = streams};
  if (r.left_after) w.leaves_after = 1 + *r.left_after;
  uint32_t tokens = std::clamp(r.sealed_bytes / 4, 1u, prompt_tokens_max);
  for (uint32_t i = 0; i < tokens; ++i) w.prompt.push_back(letters[i % letters.size()]);
  return w;
}

class replayer {
 public:
  replayer(const replay_schedule& s, std::shared_ptr<const served_model> model)
      : schedule_(s),
        on_({.records = uint32_t(4 * s.messages.size() + 4096), .stop_once_in = 0},
            std::move(model)),
        turns_(s) {}

  replayed run() {
    start();
    if (on_.good()) play();
    if (on_.good()) end();
    return report();
  }

 private:
  void start();
  void play();
  void end();
  replayed report();
  cluster_config file() const;
  void pace();
  void feed();
  void step(uint64_t latest_ns);
  template <class Done>
  void until(const char* what, uint64_t last_ns, Done&& done);

  const replay_schedule& schedule_;
  stage on_;
  message_turns turns_;
  std::vector<wish> wishes_;
  size_t fed_ = 0;
  std::shared_ptr<sim_house> house_;
  supervisor_actor supervisor_;
  uint64_t begin_ns_ = UINT64_MAX, messages_ = 0;
};

/// Room for all of them at once in every engine.
cluster_config replayer::file() const {
  size_t engines = schedule_.engines.size(), requests = wishes_.size();
  uint32_t context = 1;
  for (const auto& w : wishes_)
    context = std::max(context, uint32_t(w.prompt.size()) + w.max_tokens);
  return cluster_config::parse(
      fmt::format("name = \"replay\"\nprofile = \"lab\"\n[model]\npath = \"/synthetic\"\ncontext = "
                  "{}\n[[hosts]]\nname = \"here\"\ncores = {}\n[engines]\ncount = {}\nthreads = 1\n"
                  "[batching]\npage_tokens = {}\nstep_tokens = 4096\nchunk_tokens = 4096\n"
                  "running = {}\nqueue = {}\n",
                  context, engines, engines, page_tokens, std::min<size_t>(requests, running_max),
                  requests),
      "replay.toml");
}

void replayer::start() {
  uint64_t pages = 1, most = 1;
  for (const auto& r : schedule_.requests) {
    wishes_.push_back(wish_for(r, on_.words.plain()));
    const auto& w = wishes_.back();
    uint64_t own = (w.prompt.size() + w.max_tokens + page_tokens - 1) / page_tokens;
    pages += own;
    most = std::max(most, own);
  }
  pages = std::min(pages, most * running_max);
  auto config = file();
  for (const auto& problem : config.problems()) on_.facts.violated("{}", problem);
  if (!on_.good()) return;
  on_.begin(config.get());
  house_ = std::make_shared<sim_house>(*on_.sys, on_.facts, on_.trace.get(),
                                       engine_size{.pages = uint32_t(pages)});
  supervisor_ = on_.join("here", house_);
  until("the engines do not come up", on_.now_ns() + end_within_ns, [this] {
    return on_.known_fleet().settled() && on_.desk().engines().size() == schedule_.engines.size();
  });
  pace();
}

/// So fast that what an engine says is there before its recorded time, and is held until then.
void replayer::pace() {
  std::map<uint64_t, size_t> of_request;
  for (const auto& m : schedule_.messages)
    if (m.what.taker == actor_kind::engine) of_request[m.what.request] = m.index;
  for (auto* core : on_.living_cores()) {
    int64_t ns = 1'000'000;
    for (size_t i = 0; i < wishes_.size(); ++i) {
      const auto& r = schedule_.requests[i];
      if (of_request[r.id] != core->slot || r.runs_ns == 0) continue;
      ns = std::min(ns, r.runs_ns / (2 * (int64_t(wishes_[i].max_tokens) + 2)));
    }
    core->step_us = uint64_t(std::max<int64_t>(1, ns / 1000));
  }
}

void replayer::feed() {
  bool any = false;
  for (; fed_ < wishes_.size(); ++fed_, any = true) {
    if (turns_.due_ns(schedule_.requests[fed_].asked_ns) > on_.now_ns()) break;
    on_.face_state().wishes.push_back(std::move(wishes_[fed_]));
  }
  if (any) caf::anon_send(on_.face, stirred::value);
}

/// One message whose time and turn have come; without one, time goes on to whatever is next.
void replayer::step(uint64_t latest_ns) {
  auto next = turns_.choose(on_.jobs->jobs, on_.now_ns());
  if (next.due_ns <= on_.now_ns()) {
    turns_.take(on_.jobs->jobs, next);
    on_.run_first();
    ++messages_;
    return on_.check_step();
  }
  uint64_t then = std::min(next.due_ns, latest_ns);
  const auto& timers = on_.jobs->clock().schedule();
  if (!timers.empty()) {
    auto at = timers.begin()->first.time_since_epoch();
    then =
        std::min(then, uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(at).count()));
  }
  if (fed_ < wishes_.size())
    then = std::min(then, turns_.due_ns(schedule_.requests[fed_].asked_ns));
  on_.jobs->advance_time(std::chrono::nanoseconds(std::max(then, on_.now_ns() + 1) - on_.now_ns()));
}

template <class Done>
void replayer::until(const char* what, uint64_t last_ns, Done&& done) {
  while (on_.good() && !done()) {
    step(last_ns + 1);
    if (on_.now_ns() > last_ns) on_.facts.violated("{}; {}", what, on_.state());
  }
}

void replayer::play() {
  begin_ns_ = on_.now_ns() + 1'000'000;
  turns_.begin(begin_ns_);
  uint64_t last = begin_ns_ + end_within_ns;
  if (!schedule_.messages.empty())
    last += uint64_t(std::max<int64_t>(0, schedule_.messages.back().at_ns));
  until("requests do not end", last, [this] {
    feed();
    return fed_ == wishes_.size() && on_.face_state().open() == 0 && on_.desk().requests() == 0 &&
           on_.requests_alive.empty() && on_.jobs->jobs.empty();  // nor is anything held
  });
  on_.check_arenas_are_zero();
}

void replayer::end() {
  on_.order([](schema::ControlAsk::Builder b) { b.setDown(schema::Down::DRAIN); });
  until("the cluster does not go down", on_.now_ns() + end_within_ns,
        [this] { return on_.told_down() && on_.empty(); });
  on_.check_arenas_are_zero();
}

replayed replayer::report() {
  replayed r{.violation = on_.facts.violation,
             .messages = messages_,
             .virtual_ns = int64_t(on_.now_ns() - std::min(begin_ns_, on_.now_ns())),
             .served = on_.facts.endings[size_t(ending::served)],
             .left = on_.facts.endings[size_t(ending::cancelled)]};
  auto kept = on_.trace->read();
  gathered own;
  own.processes.push_back({.host = "here",
                           .pid = uint32_t(::getpid()),
                           .mode = trace_mode::all,
                           .lost = kept.lost,
                           .now_ns = on_.now_ns(),
                           .records = std::move(kept.records)});
  r.records = make_timeline(std::move(own));
  std::vector<uint16_t> engines(schedule_.engines.size());
  std::iota(engines.begin(), engines.end(), 0);  // the directory counts them from 0
  r.taken = messages_of(r.records, schedule_, engines, int64_t(begin_ns_));
  if (!r.violation.empty()) return r;
  house_.reset();
  std::vector<supervisor_actor> supervisors{std::exchange(supervisor_, nullptr)};
  on_.end(std::move(supervisors));
  return r;
}

}  // namespace

replayed replay(const replay_schedule& schedule, std::shared_ptr<const served_model> model) {
  // A run that failed leaves actors in any state: it is not taken apart.
  auto* r = new replayer(schedule, std::move(model));
  auto done = r->run();
  if (done.violation.empty()) delete r;
  return done;
}

}  // namespace lethe::sim
