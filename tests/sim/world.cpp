#include "tests/sim/world.hpp"

#include <algorithm>

namespace lethe::sim {

namespace {

struct sim_config final : caf::actor_system_config {
  sim_config() {
    set("scheduler.policy", caf::atom("testing"));
    add_message_types<caf::id_block::lethe_messages>();
  }
};

}  // namespace

world::world(const run_options& options, std::shared_ptr<const served_model> model)
    : options_(options),
      facts_(options.seed, options.planted, std::move(model)),
      words_(*facts_.model),
      arenas_before_(count_arenas().alive) {
  trace_ = std::make_unique<tracer>(
      tracer_config{.mode = trace_mode::all, .records = 64, .now = [this] {
                      if (!facts_.throw_in.empty() && running_ == facts_.throw_in) {
                        facts_.throw_in.clear();
                        facts_.unwinding = true;
                        facts_.happened(running_ == "engine"    ? fault::engine_threw
                                        : running_ == "request" ? fault::request_threw
                                                                : fault::supervisor_threw);
                        throw std::runtime_error("planted");
                      }
                      return now_us() * 1000;
                    }});
  config_ = std::make_unique<sim_config>();
  sys_ = std::make_unique<caf::actor_system>(*config_);
  jobs_ = dynamic_cast<caf::scheduler::test_coordinator*>(&sys_->scheduler());
  check(jobs_ != nullptr);
}

world::~world() = default;

uint64_t world::now_us() const {
  auto since = jobs_->clock().current_time.time_since_epoch();
  return uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

void world::advance(uint64_t us) { jobs_->advance_time(std::chrono::microseconds(us)); }

const admission& world::desk() const { return state_of<scheduler_state>(scheduler_).desk(); }
const fleet& world::known_fleet() const { return state_of<directory_state>(directory_).known(); }
scaling_rules world::scaling() const { return state_of<directory_state>(directory_).scaling(); }
client_state& world::face_state() const { return state_of<client_state>(face_); }

void world::begin() {
  jobs_->run();  // CAF's own
  auto& chance = facts_.chance;
  hosts_max_ = uint32_t(chance.between(1, 4));
  page_tokens_ = uint32_t(1) << chance.between(2, 4);
  running_max_ = uint32_t(chance.between(4, 8));
  queue_max_ = uint32_t(chance.between(4, 24));
  size_ = {.pages = uint32_t(context_ / 2 + chance.between(0, 24)),
           .depth = uint32_t(chance.between(1, 3))};
  auto config = draw_config(true);
  auto plan = cluster_plan::make(config.get(), machine{.cores = 8, .memory = uint64_t{1} << 34});
  if (!plan) return facts_.violated("config: {}", plan.why().text);
  scheduler_ = sys_->spawn(scheduler, trace_.get());
  directory_events events{.down = [this] { told_down_ = true; }};
  directory_ = sys_->spawn(directory, *std::move(plan), scheduler_, trace_.get(), events);
  face_ = sys_->spawn(client, &facts_, scheduler_, directory_, trace_.get());
  jobs_->run();
  for (uint32_t i = 0; i < hosts_max_; ++i) {
    hosts_.push_back({.name = fmt::format("h{}", i)});
    hosts_.back().rejoins_ms = chance.below(300);
  }
}

/// One message of one actor, chosen by chance; the checks follow it. Where nobody has anything to
/// do, time goes on to the next who has.
void world::step() {
  auto& chance = facts_.chance;
  for (auto& h : hosts_)
    if (!h.up && now_us() / 1000 >= h.rejoins_ms) join(h);
  if (chance.once_in(4)) advance(chance.below(300));
  if (pick()) {
    run_first();
  } else if (!jobs_->jobs.empty()) {
    advance(500);
  } else if (!jobs_->trigger_timeout()) {
    facts_.violated("nobody has anything to do, ever");
  }
  check_step();
}

/// Puts one of the ready actors first. Now and then one is held back, as by a network or a busy
/// processor; what others send it meanwhile queues up behind.
bool world::pick() {
  auto& chance = facts_.chance;
  auto& jobs = jobs_->jobs;
  std::erase_if(held_, [now = now_us()](const auto& h) { return h.until_us <= now; });
  auto is_held = [&](caf::resumable* j) {
    return std::ranges::find(held_, j, &held_back::job) != held_.end();
  };
  std::vector<size_t> free;
  for (size_t i = 0; i < jobs.size(); ++i)
    if (!is_held(jobs[i])) free.push_back(i);
  if (free.empty()) return false;
  size_t chosen = chance.one_of(free);
  if (chance.once_in(24)) {
    uint64_t most = chance.once_in(8) ? 60'000 : 3'000;
    held_.push_back({jobs[chosen], now_us() + chance.between(50, most)});
    return pick();
  }
  std::rotate(jobs.begin(), jobs.begin() + ptrdiff_t(chosen), jobs.end());
  return true;
}

void world::meet(caf::scheduled_actor& who) {
  if (std::string_view(who.name()) != "request" || !met_.insert(who.id()).second) return;
  requests_alive_.insert(who.id());
  who.attach_functor([this, id = who.id()] { requests_alive_.erase(id); });
}

void world::run_first() {
  auto* who = dynamic_cast<caf::scheduled_actor*>(jobs_->jobs.front());
  check(who != nullptr);
  meet(*who);
  describe(*who);
  running_ = who->name();
  jobs_->run_once();
  running_.clear();
  facts_.unwinding = false;
  ++report_.steps;
}

/// Counts the message that comes next, and prints it.
void world::describe(caf::scheduled_actor& who) {
  auto* m = who.peek_at_next_mailbox_element();
  if (m == nullptr || m->content().size() == 0) return;
  auto type = m->content().type(0);
  bool own = m->content().match_elements<tick>() || m->content().match_elements<stirred>();
  if (!own) ++report_.messages;
  for (uint64_t word : {uint64_t(who.id()), uint64_t(type.first), now_us()})
    report_.digest = (report_.digest ^ word) * 0x100000001b3;
  if (!options_.trace) return;
  auto name = own ? m->content().stringify(0) : sys_->types().portable_name(type);
  fmt::print("{:10} us  {} {} <- {} from {}\n", now_us(), who.name(), who.id(), name,
             m->sender ? m->sender->id() : 0);
}

run_report world::run() {
  begin();
  if (good()) storm();
  if (good()) calm();
  if (good()) breathe();
  if (good()) probe();
  if (good()) down();
  if (good()) end_actors();
  report_.violation = facts_.violation;
  report_.virtual_ms = now_us() / 1000;
  report_.faults = facts_.faults;
  report_.endings = facts_.endings;
  return report_;
}

/// No new faults: every request ends, and what runs becomes what is wanted.
void world::calm() {
  facts_.stormy = false;
  facts_.throw_in.clear();
  for (auto* core : living_cores()) {
    core->step_us = 500;
    core->ranks->fail_next = false;
  }
  for (auto& h : hosts_) h.rejoins_ms = 0;
  until("the clients' requests do not end", 60'000, [this] { return face_state().open() == 0; });
  until("the cluster does not become what its file says", 60'000, [this] { return converged(); });
  check_arenas_are_zero();
}

/// After all that, it serves.
void world::probe() {
  auto before = facts_.endings[size_t(ending::served)];
  wish plain{.prompt = {words_.plain()[1], words_.plain()[2]}, .max_tokens = 4};
  face_state().wishes.push_back(plain);
  caf::anon_send(face_, stirred::value);
  until("the last request does not end", 10'000, [&] { return face_state().open() == 0; });
  if (good() && facts_.endings[size_t(ending::served)] != before + 1)
    facts_.violated("a cluster that has what its file says does not serve");
}

void world::down() {
  if (facts_.chance.once_in(2)) ask(facts_.chance.below(12));
  auto how = facts_.chance.once_in(2) ? schema::Down::NOW : schema::Down::DRAIN;
  for (uint64_t steps = facts_.chance.below(400); good() && steps > 0; --steps) step();
  order([how](schema::ControlAsk::Builder b) { b.setDown(how); });
  until("the cluster does not go down", 30'000, [this] { return told_down_ && empty(); });
  check_arenas_are_zero();
}

void world::end_actors() {
  report_.requests = face_state().asked();
  facts_.unwinding = true;
  for (auto& h : hosts_)
    if (h.up) caf::anon_send_exit(h.supervisor, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(face_, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(directory_, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(scheduler_, caf::exit_reason::user_shutdown);
  jobs_->run();
  // Alarms of houses that died
  while (jobs_->trigger_timeout()) jobs_->run();
  for (auto& h : hosts_) h.supervisor = nullptr;
  face_ = nullptr;
  directory_ = nullptr;
  scheduler_ = nullptr;
}

}  // namespace lethe::sim
