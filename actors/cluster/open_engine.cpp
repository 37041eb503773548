#include "actors/cluster/open_engine.hpp"

#include <future>

#include "actors/cluster/rank_device.hpp"
#include "actors/cluster/rank_link.hpp"
#include "kernels/pairs_row.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/config/check_policy.hpp"
#include "runtime/config/engine_config_of.hpp"
#include "runtime/config/shape_of.hpp"
#include "runtime/policy/policy.hpp"
#include "runtime/trace/allowed_types.hpp"

namespace lethe {

namespace {

trace_mode mode_of(schema::TraceMode m) {
  switch (m) {
    case schema::TraceMode::OFF:
      return trace_mode::off;
    case schema::TraceMode::ALL:
      return trace_mode::all;
    case schema::TraceMode::ALLOWED:
      break;
  }
  return trace_mode::allowed;
}

}  // namespace

result<engine_config> config_of(schema::EngineSpec::Reader spec) {
  auto made = engine_config_of(spec.getEngines(), spec.getBatching(), spec.getModel());
  made.threads = spec.getThreads();
  // What any other profile would be refused for, by the same table.
  auto wanted = [spec](std::string_view name) {
    return spec.getProfile() == schema::Profile::LAB && wants(spec.getOptimizations(), name);
  };
  made.keeps_prefixes = wanted("prefix-cache");
  made.looks_ahead = wanted("request-lookahead");
  const bool on_cores = kind_of(spec) == rank_kind::cores;
  switch (spec.getEngines().getArithmetic()) {
    case schema::Arithmetic::EXACT:
      return made;
    case schema::Arithmetic::TENSOR:
      if (on_cores) made.row = &amx_tensor;
      return made;
    case schema::Arithmetic::PAIRS:
      if (!on_cores) return fail("engines.arithmetic: \"pairs\" is for cores, not for devices");
      made.row = &pairs_row();
      return made;
  }
  return fail("engines.arithmetic {}: this program knows none of that number; the leader is newer",
              uint16_t(spec.getEngines().getArithmetic()));
}

hash32 program_digest() {
  static const hash32 digest = [] {
    auto file = mapped_file::open("/proc/self/exe");
    return file ? sha256({file->bytes()}) : hash32{};
  }();
  return digest;
}

result<std::shared_ptr<const served_model>> engine_opener::model(const model_options& options) {
  std::lock_guard guard(lock_);
  std::string key = options.path.string() + '\n' + options.quantize + '\n' + options.name;
  if (auto known = models_[key].lock()) return known;
  auto opened = served_model::open(options);
  if (opened) models_[key] = *opened;
  return opened;
}

/// Of an engine whose ranks are processes; else none.
result<std::unique_ptr<rank_door>> engine_opener::door(schema::EngineSpec::Reader spec,
                                                       const opening& told) {
  if (spec.getEngines().getProcesses() != schema::Processes::RANKS)
    return std::unique_ptr<rank_door>();
  if (!here_) return fail("ranks: an engine that shares its process has none of their own");
  auto door = open_door(spec, here_->tls);
  if (door) told.door((*door)->port());
  return door;
}

result<opened_engine> engine_opener::open(schema::EngineSpec::Reader spec, const opening& told) {
  auto m = spec.getModel();
  auto release = std::async(program_digest);
  auto ranks_come_in = door(spec, told);
  if (!ranks_come_in) return ranks_come_in.why();
  auto opened = model({.path = m.getPath().cStr(),
                       .name = m.getName(),
                       .quantize = m.getQuantize(),
                       .share = *ranks_come_in ? share_beside(spec, 0) : model_share{},
                       .on_devices = kind_of(spec) == rank_kind::device,
                       .progress = told.progress});
  if (!opened) return opened.why();
  auto wanted = config_of(spec);
  if (!wanted) return wanted.why();
  ranks_maker maker;
  if (*ranks_come_in)
    maker = [&](const grid_config& config) {
      return start_ranks(spec, *std::move(ranks_come_in), *here_, **opened, config, told.progress);
    };
  auto serving = engine::start((*opened)->forms(), *wanted, maker);
  if (!serving) return serving.why();
  return opened_engine{*std::move(opened), *std::move(serving), release.get()};
}

tracer_config trace_config_of(schema::Trace::Reader t) {
  return {.mode = mode_of(t.getMode()),
          .records = t.getRecords(),
          .allowed_types = allowed_message_types()};
}

engine_setup setup_of(const wire<schema::StartEngine>& order, std::shared_ptr<engine_opener> opener,
                      tracer* trace) {
  engine_setup setup{.trace = trace};
  setup.ticks_from =
      std::chrono::steady_clock::now() - std::chrono::system_clock::now().time_since_epoch();
  auto read = unpack(order, [&setup](schema::StartEngine::Reader r) {
    setup.slot = r.getSpec().getSlot();
    setup.epoch = r.getSpec().getEpoch();
    setup.rules.labels_allowed = policy::takes(r.getSpec().getProfile(), "request-labels");
    setup.shape = shape_of(r.getSpec().getShape());
    setup.tokens_only = !policy::takes(r.getSpec().getProfile(), "exact-metrics");
  });
  check(bool(read));
  setup.open = [order, opener = std::move(opener)](const opening& told) -> result<opened_engine> {
    result<opened_engine> opened = fail("the order to start was no message");
    auto again = unpack(
        order, [&](schema::StartEngine::Reader r) { opened = opener->open(r.getSpec(), told); });
    if (!again) return again.why();
    return opened;
  };
  return setup;
}

}  // namespace lethe
