#include "runtime/config/plan_memory.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>

#include "parallel/device_upload.hpp"
#include "runtime/config/engine_config_of.hpp"
#include "runtime/config/quantity.hpp"
#include "runtime/model/file_weights.hpp"

namespace lethe {

namespace {

/// Whole, or what a rank reads.
uint64_t bytes_of(const file_weights& file, const model_share& share) {
  auto bytes = file.bytes_of(share);
  check(bool(bytes));  // the cut was checked before
  return *bytes;
}

rank_need need_of(const file_weights& file, const grid_config& ranks, const placed_rank& rank,
                  arithmetic how) {
  const model_shape& shape = file.weights().shape;
  shard_part part = part_for(shape, ranks.ranks, rank.stage, rank.tensor_rank);
  shard_config config = rank_config(ranks, part, false);
  if (rank.on_device()) return device_need(file.weights(), config, how);
  uint64_t page = kv_page_bytes(shape, part, config.kv, config.page_tokens);
  uint32_t number = rank.stage * ranks.ranks.tensor + rank.tensor_rank;
  return {.weights = bytes_of(file, {ranks.ranks, {number}}), .kv = config.pages * page};
}

/// Of what the ranks of one engine on one host read there is one copy there; engines of one process
/// share theirs.
uint64_t host_weights(const checked_config& c, const file_weights& file, uint32_t host) {
  auto e = c.config.get().getEngines();
  std::map<uint32_t, model_share> copies;
  for (const auto& rank : c.layout.ranks) {
    if (rank.host != host || rank.on_device()) continue;
    bool shared = e.getProcesses() == schema::Processes::SHARED;
    auto& copy = copies[shared ? 0 : rank.engine];
    copy.ranks = {e.getTensor(), e.getPipeline()};
    if (e.getProcesses() == schema::Processes::RANKS)
      copy.of.push_back(rank.stage * e.getTensor() + rank.tensor_rank);
  }
  uint64_t all = 0;
  for (const auto& [engine, share] : copies) all += bytes_of(file, share);
  return all;
}

/// What helps who has not done it.
const char* smaller_types(const checked_config& c) {
  return c.config.get().getModel().getQuantize().size() == 0 ? "quantize, " : "";
}

/// Each device holds one rank.
void check_devices(checked_config& c) {
  for (size_t i = 0; i < c.layout.ranks.size(); ++i) {
    const auto& rank = c.layout.ranks[i];
    const auto& host = c.layout.hosts[rank.host];
    const rank_need& need = c.needs[i];
    if (!rank.on_device() || need.all() <= host.device_memory) continue;
    return c.config.refuse("model.path",
                           "too large: a rank needs {}: {}, and about {}; {} of host {} has {}; "
                           "{}a wider cut, or a smaller kv_memory, step_tokens or running",
                           bytes_text(need.all()), computed_text(need), estimated_text(need),
                           rank.device, host.name, bytes_text(host.device_memory),
                           smaller_types(c));
  }
}

/// A rank on a device takes no more of its host's memory than its weights go through.
void check_host(checked_config& c, const file_weights& file, uint32_t at) {
  const auto& host = c.layout.hosts[at];
  uint64_t kv = 0, loading = 0, ranks = 0;
  for (size_t i = 0; i < c.layout.ranks.size(); ++i) {
    const auto& rank = c.layout.ranks[i];
    if (rank.host != at) continue;
    ++ranks;
    rank.on_device() ? loading += upload_pieces* upload_piece_bytes : kv += c.needs[i].kv;
  }
  uint64_t weights = host_weights(c, file, at);
  if (kv + weights + loading <= host.memory) return;
  c.config.refuse("model.path",
                  "too large: {} of weights, {} to load devices through and {} for keys and "
                  "values of {} ranks, host {} gives {}; {}a smaller kv_memory or fewer engines",
                  bytes_text(weights), bytes_text(loading), bytes_text(kv), ranks, host.name,
                  bytes_text(host.memory), smaller_types(c));
}

/// As a start opens them: converted where the file says so.
result<std::unique_ptr<file_weights>> open_as_told(const checkpoint& file,
                                                   schema::Model::Reader model) {
  if (model.getQuantize().size() == 0) return file_weights::open(file, {});
  auto type = dtype_named(model.getQuantize().cStr());
  if (!type) return type.why();
  return file_weights::open(file, *type);
}

/// Whether tensor arithmetic, or that by pairs, rounds anything on cores.
bool rounds_on_cores(const model_weights& w, kv_type kv) {
  auto takes = [](std::initializer_list<const matrix*> all) {
    return std::ranges::any_of(all, [](auto* m) { return takes_rounded(amx_tensor, *m); });
  };
  return kv == kv_type::bf16 || takes({&w.head}) ||
         std::ranges::any_of(w.layers, [&](const layer_weights& l) {
           const auto& a = l.attention;
           return takes({&a.q, &a.k, &a.v, &a.o, &l.mlp.gate, &l.mlp.up, &l.mlp.down});
         });
}

void note_what_stays_exact(checked_config& c, const model_weights& weights, kv_type kv) {
  if (c.config.get().getEngines().getArithmetic() == schema::Arithmetic::EXACT) return;
  bool on_cores = std::ranges::none_of(c.layout.ranks, &placed_rank::on_device);
  if (on_cores && !rounds_on_cores(weights, kv))
    c.layout.notes.push_back(
        "engines.arithmetic changes nothing here: neither weights whose columns are a multiple of "
        "256 nor keys and values (batching.kv) are bf16");
}

}  // namespace

void plan_memory(checked_config& c) {
  auto m = c.config.get().getModel();
  auto e = c.config.get().getEngines();
  auto file = checkpoint::open(c.config.resolve(m.getPath().cStr()));
  if (!file) return c.config.refuse("model.path", "{}", file.why().text);
  auto weights = open_as_told(*file, m);
  if (!weights)
    return c.config.refuse(m.getQuantize().size() == 0 ? "model.path" : "model.quantize", "{}",
                           weights.why().text);
  auto ranks =
      engine::ranks_for(file->shape(), engine_config_of(e, c.config.get().getBatching(), m));
  if (!ranks) return c.config.refuse("batching.kv_memory", "is too little: {}", ranks.why().text);
  note_what_stays_exact(c, (*weights)->weights(), ranks->kv);
  c.weight_bytes = bytes_of(**weights, {});
  for (const auto& rank : c.layout.ranks)
    c.needs.push_back(need_of(**weights, *ranks, rank, arithmetic(e.getArithmetic())));
  check_devices(c);
  for (uint32_t host = 0; host < c.layout.hosts.size(); ++host) check_host(c, **weights, host);
}

std::string computed_text(const rank_need& need, const char* whose) {
  std::string text = fmt::format("{} weights{}, {} keys and values", bytes_text(need.weights),
                                 whose, bytes_text(need.kv));
  return need.steps == 0 ? text : text + fmt::format(", {} steps", bytes_text(need.steps));
}

std::string estimated_text(const rank_need& need) {
  return fmt::format("{} graphs, {} NCCL, {} context", bytes_text(need.graphs),
                     bytes_text(need.nccl), bytes_text(need.context));
}

}  // namespace lethe
