#include "actors/sim/stage.hpp"

namespace lethe::sim {

namespace {

struct sim_config final : caf::actor_system_config {
  sim_config() {
    set("scheduler.policy", caf::atom("testing"));
    add_message_types<caf::id_block::lethe_messages>();
  }
};

template <class State, class Handle>
State& state_of(const Handle& actor) {
  auto* at = dynamic_cast<typename Handle::template stateful_pointer<State>>(
      caf::actor_cast<caf::abstract_actor*>(actor));
  check(at != nullptr);
  return at->state;
}

fault fault_in(const std::string& actor) {
  return actor == "engine"    ? fault::engine_threw
         : actor == "request" ? fault::request_threw
                              : fault::supervisor_threw;
}

}  // namespace

stage::stage(const stage_options& options, std::shared_ptr<const served_model> model)
    : facts(options.seed, options.planted, std::move(model), options.stop_once_in),
      words(*facts.model, facts.stop_once_in),
      arenas_before_(count_arenas().alive) {
  facts.shape = options.shape;
  auto now = [this] {
    if (!facts.throw_in.empty() && running_ == facts.throw_in) {
      facts.throw_in.clear();
      facts.unwinding = true;
      facts.happened(fault_in(running_));
      throw std::runtime_error("planted");
    }
    return now_ns();
  };
  trace = std::make_unique<tracer>(
      tracer_config{.mode = trace_mode::all, .records = options.records, .now = now});
  config = std::make_unique<sim_config>();
  sys = std::make_unique<caf::actor_system>(*config);
  jobs = dynamic_cast<caf::scheduler::test_coordinator*>(&sys->scheduler());
  check(jobs != nullptr);
  jobs->run();  // CAF's own
}

stage::~stage() = default;

void stage::begin(schema::Config::Reader file) {
  auto plan = cluster_plan::make(file, machine{.cores = 8, .memory = uint64_t{1} << 34});
  if (!plan) return facts.violated("config: {}", plan.why().text);
  to_scheduler = sys->spawn(scheduler, trace.get());
  directory_setup setup{.program = hosts_program, .down = [this] { told_down_ = true; }};
  to_directory = sys->spawn(directory, *std::move(plan), to_scheduler, trace.get(), setup);
  face = sys->spawn(client, &facts, to_scheduler, to_directory, trace.get());
  jobs->run();
}

supervisor_actor stage::join(const std::string& host, const std::shared_ptr<sim_house>& house) {
  supervisor_setup setup{.host = host,
                         .has = {.cores = 4, .memory = uint64_t{1} << 34},
                         .program = hosts_program,
                         .house = house,
                         .trace = trace.get()};
  return sys->spawn(supervisor, setup, to_directory);
}

void stage::order(const std::function<void(schema::ControlAsk::Builder)>& fill) {
  clerk by(trace.get(), actor_kind::face);
  caf::anon_send(to_directory, by.write<schema::ControlAsk>(0, fill));
}

uint64_t stage::now_ns() const {
  auto since = jobs->clock().current_time.time_since_epoch();
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

const admission& stage::desk() const { return state_of<scheduler_state>(to_scheduler).desk(); }
const fleet& stage::known_fleet() const { return state_of<directory_state>(to_directory).known(); }
scaling_rules stage::scaling() const { return state_of<directory_state>(to_directory).scaling(); }
client_state& stage::face_state() const { return state_of<client_state>(face); }

std::vector<sim_core*> stage::living_cores() const {
  std::map<std::pair<uint16_t, uint32_t>, sim_core*> by_name;  // addresses do not repeat
  for (auto* core : facts.cores)
    if (!core->dead) by_name[{core->slot, core->epoch}] = core;
  std::vector<sim_core*> all;
  for (auto& [name, core] : by_name) all.push_back(core);
  return all;
}

caf::scheduled_actor& stage::first() {
  auto* who = dynamic_cast<caf::scheduled_actor*>(jobs->jobs.front());
  check(who != nullptr);
  return *who;
}

void stage::meet(caf::scheduled_actor& who) {
  if (std::string_view(who.name()) != "request" || !met_.insert(who.id()).second) return;
  requests_alive.insert(who.id());
  who.attach_functor([this, id = who.id()] { requests_alive.erase(id); });
}

void stage::run_first() {
  auto& who = first();
  meet(who);
  running_ = who.name();
  jobs->run_once();
  running_.clear();
  facts.unwinding = false;
}

void stage::end(std::vector<supervisor_actor> supervisors) {
  facts.unwinding = true;
  for (auto& one : supervisors) caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(face, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(to_directory, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(to_scheduler, caf::exit_reason::user_shutdown);
  supervisors.clear();
  jobs->run();
  // Alarms of houses that died
  while (jobs->trigger_timeout()) jobs->run();
  face = nullptr;
  to_directory = nullptr;
  to_scheduler = nullptr;
}

}  // namespace lethe::sim
