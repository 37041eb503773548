#include <gtest/gtest.h>
#include <sys/stat.h>

#include "parallel/device_shard.hpp"
#include "parallel/grid.hpp"
#include "runtime/config/engine_config_of.hpp"
#include "runtime/model/file_weights.hpp"
#include "runtime/model/load.hpp"
#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/emulated_row.hpp"
#include "tests/e2e/quantized_model.hpp"
#include "tests/unit/config_read.hpp"
#include "tests/unit/hollow_model.hpp"
#include "tests/unit/model_files.hpp"
#include "tests/unit/nccl_ranks.hpp"
#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_memory_weights.hpp"
#include "tests/unit/parallel_random_model.hpp"

// What a file is said to take is what its ranks take.

namespace lethe::testing {
namespace {

namespace fs = std::filesystem;

const cuda_row& row_of(arithmetic how) {
  return how == arithmetic::tensor ? emulated_tensor_row : emulated_row;
}

/// Ranks of a cut, begun on devices as their processes would begin them.
struct begun : nccl_ranks {
  begun(const weight_source& from, const grid_config& wanted, arithmetic how)
      : nccl_ranks(wanted.ranks), devices(size()), shards(size()), errors(size()) {
    timeout = std::chrono::milliseconds(60'000);  // devices are slow
    for (auto& d : devices)
      fake.serve(d.stream(), {.enqueue = [&d](device_call c) { d.enqueue(std::move(c)); },
                              .capturing = [&d] { return d.capturing(); }});
    if (size() > 1) join();
    on_all(size(), [&](uint32_t r) {
      fake_nccl::be(r);
      begin(r, from, config_of(wanted, from.weights().shape, r), how);
    });
  }
  ~begun() {
    on_all(size(), [this](uint32_t r) {
      fake_nccl::be(r);
      shards[r].reset();
      if (worlds[r]) (void)worlds[r]->close();
    });
    for (auto& w : worlds) w.reset();
  }

  static shard_config config_of(const grid_config& g, const model_shape& shape, uint32_t r) {
    return rank_config(g, part_for(shape, g.ranks, r / g.ranks.tensor, r % g.ranks.tensor), false);
  }
  void begin(uint32_t r, const weight_source& from, const shard_config& config, arithmetic how) {
    auto loaded = device_weights::load(devices[r], from, config.part, {.piece_bytes = 1 << 20});
    if (!loaded) return void(errors[r] = loaded.why().text);
    auto made =
        device_shard::make(devices[r], row_of(how), *std::move(loaded), {config}, worlds[r].get());
    if (!made) return void(errors[r] = made.why().text);
    shards[r] = *std::move(made);
  }
  size_t bytes(uint32_t r) const {
    return devices[r].counted().device_bytes + shards[r]->shared().size();
  }

  std::deque<emulated::device> devices;
  std::vector<std::unique_ptr<device_shard>> shards;
  std::vector<std::string> errors;
};

struct plan_case {
  std::string model, quantize;
  cut ranks;
  arithmetic how = arithmetic::exact;
  uint32_t running = 4;

  std::string file(uint64_t device_memory) const {
    return fmt::format(
        "[model]\npath = \"{}\"\n{}[batching]\nkv_memory = \"1 MiB\"\nrunning = {}\n"
        "step_tokens = {}\n[engines]\nprocesses = \"ranks\"\ntensor = {}\npipeline = {}\n"
        "arithmetic = \"{}\"\n[[hosts]]\nname = \"a\"\ndevice_memory = {}\n"
        "devices = [\"cuda:0\", \"cuda:1\", \"cuda:2\", \"cuda:3\", "
        "\"cuda:4\", \"cuda:5\"]\n",
        model, quantize.empty() ? "" : "quantize = \"" + quantize + "\"\n", running, running + 13,
        ranks.tensor, ranks.pipeline, how == arithmetic::tensor ? "tensor" : "exact",
        device_memory);
  }
  std::optional<dtype> type() const {
    return quantize.empty() ? std::nullopt : std::optional(*dtype_named(quantize));
  }
};

constexpr uint64_t enough = uint64_t{16} << 30;

/// The file's engine, as each of its ranks is told of it.
grid_config ranks_of(const checked_config& c, const model_shape& shape) {
  auto all = c.config.get();
  auto g = engine::ranks_for(shape,
                             engine_config_of(all.getEngines(), all.getBatching(), all.getModel()));
  if (!g) throw std::runtime_error(g.why().text);
  return *g;
}

uint64_t computed(const rank_need& n) { return n.weights + n.kv + n.steps; }

void expect_what_is_taken(const plan_case& p) {
  SCOPED_TRACE(p.model + " " + p.quantize +
               fmt::format(" {} x {}", p.ranks.tensor, p.ranks.pipeline));
  auto c = check(p.file(enough));
  ASSERT_TRUE(c.good()) << problems(c);
  auto file = checkpoint::open(p.model);
  auto source = file_weights::open(*file, p.type());
  ASSERT_TRUE(source) << source.why().text;
  begun ranks(**source, ranks_of(c, file->shape()), p.how);
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    ASSERT_EQ(ranks.errors[r], "") << "rank " << r;
    EXPECT_EQ(computed(c.needs[r]), ranks.bytes(r)) << "rank " << r;
    EXPECT_EQ(c.needs[r].graphs, ranks.devices[r].counted().graph_nodes * graph_node_bytes)
        << "rank " << r;
  }
}

/// A model of the repository in a type; its values and half of what is gated in another one.
std::string stored_as(const test::temporary_folder& folder, dtype type) {
  auto file = checkpoint::open(std::string(places::source) + "/models/ember-draft");
  auto path = folder / (std::string(name_of(type)) + ".gguf");
  e2e::write_mixed(*file, path, [type](std::string_view name) {
    return name.ends_with(".v") || name.ends_with(".up") ? dtype::q8_0 : type;
  });
  return path;
}

/// Of three tensor ranks none has whole segments of K.
TEST(ConfigMemory, OfADeviceIsWhatItsRankTakesThere) {
  test::temporary_folder folder;
  const std::string draft = std::string(places::source) + "/models/ember-draft";
  for (cut ranks : {cut{1, 1}, {2, 1}, {1, 2}, {2, 2}})
    for (const char* quantize : {"", "q8_0"}) expect_what_is_taken({tiny, quantize, ranks});
  for (cut ranks : {cut{1, 1}, {3, 1}, {1, 2}, {3, 2}})
    for (const plan_case& p : std::vector<plan_case>{
             {draft, "", ranks, arithmetic::tensor},
             {draft, "q4_0", ranks, arithmetic::tensor},
             {stored_as(folder, dtype::q5_1), "", ranks},
         })
      expect_what_is_taken(p);
  // As many rows as go together in one kernel, and more.
  for (uint32_t running : {quantized_together, quantized_together + 1})
    for (const char* quantize : {"", "q8_0"})
      expect_what_is_taken({draft, quantize, {1, 1}, arithmetic::exact, running});
}

TEST(ConfigMemory, IsEnoughForARankAndNotAByteMoreThanItNeeds) {
  for (const char* quantize : {"", "q4_0"}) {
    plan_case p{tiny, quantize, {1, 1}};
    auto c = check(p.file(enough));
    ASSERT_TRUE(c.good()) << problems(c);
    auto file = checkpoint::open(p.model);
    auto source = file_weights::open(*file, p.type());
    const auto g = ranks_of(c, file->shape());
    for (int more : {-1, 0, 1}) {
      SCOPED_TRACE(fmt::format("{} {:+}", quantize, more));
      const bool fits = more >= 0;
      emulated::device on;
      on.has(computed(c.needs[0]) + uint64_t(more));
      const auto config = begun::config_of(g, file->shape(), 0);
      auto loaded = device_weights::load(on, **source, config.part, {.piece_bytes = 1 << 20});
      ASSERT_TRUE(loaded);
      auto made = device_shard::make(on, emulated_row, *std::move(loaded), {config});
      EXPECT_EQ(bool(made), fits);
      auto told = check(p.file(c.needs[0].all() + uint64_t(more)));
      EXPECT_EQ(told.good(), fits) << problems(told);
    }
  }
}

TEST(ConfigMemory, OfConvertedWeightsIsWhatFitsWhereTheFilesBytesDoNot) {
  test::temporary_folder folder;
  write_hollow(folder);
  const plan_case as_stored{folder.path(), "", {1, 1}}, converted{folder.path(), "q4_0", {1, 1}};
  const uint64_t room = check(converted.file(enough)).needs[0].all();
  EXPECT_TRUE(check(converted.file(room)).good());
  auto refused = problems(check(as_stored.file(room)));
  EXPECT_NE(refused.find("too large: a rank needs "), refused.npos) << refused;
  EXPECT_NE(refused.find("quantize, a wider cut"), refused.npos) << refused;
  auto even_so = problems(check(converted.file(room - 1)));
  EXPECT_NE(even_so.find("too large: a rank needs "), even_so.npos) << even_so;
  EXPECT_EQ(even_so.find("quantize"), even_so.npos) << "it is: " << even_so;
}

TEST(ConfigMemory, OfAModelThatCannotBeConvertedIsRefusedWhereThatIsAsked) {
  test::temporary_folder folder;
  auto text =
      problems(check(plan_case{stored_as(folder, dtype::q8_0), "q4_0", {1, 1}}.file(enough)));
  EXPECT_NE(text.find("c.toml:3: model.quantize: quant: tensor "), text.npos) << text;
}

/// Memory of a file in memory that was written to.
uint64_t held(const loaded_model& model) {
  struct stat s {};
  ::fstat(model.memfd(), &s);
  return uint64_t(s.st_blocks) * 512;
}

TEST(ConfigMemory, OfAHostIsWhatItsRanksLoad) {
  const std::string ember = std::string(places::source) + "/models/ember";
  auto file = checkpoint::open(ember);
  // At both ends of each stretch; vectors of all layers are stretches of their own.
  const uint64_t pages = uint64_t{2} * 4096 * 4 * file->shape().layers;
  for (const char* quantize : {"", "q4_0"})
    for (uint32_t rank : {0u, 1u}) {
      SCOPED_TRACE(fmt::format("{} rank {}", quantize, rank));
      auto c = check(
          fmt::format("[model]\npath = \"{}\"\n{}[engines]\npipeline = 3\nprocesses = \"ranks\"\n",
                      ember, *quantize ? "quantize = \"q4_0\"\n" : ""));
      ASSERT_TRUE(c.good()) << problems(c);
      load_options how{.share = {{1, 3}, {rank}}};
      if (*quantize) how.quantize = dtype::q4_0;
      auto loaded = loaded_model::load(*file, how);
      ASSERT_TRUE(loaded);
      EXPECT_EQ(c.weight_bytes, (*loaded)->bytes());
      EXPECT_LE(c.needs[rank].weights, held(**loaded));
      EXPECT_GT(c.needs[rank].weights + pages, held(**loaded));
    }
}

/// A page holds about as many bytes of every type, unless the file says how many tokens.
TEST(ConfigMemory, PagesOfSmallerNumbersHoldMoreTokens) {
  model_shape shape = small_shape(1, 32);
  auto tokens = [&](kv_type kv, uint32_t asked) {
    return engine::ranks_for(shape, {.kv = kv, .page_tokens = asked})->page_tokens;
  };
  EXPECT_EQ(tokens(kv_type::f32, 0), 16u);
  EXPECT_EQ(tokens(kv_type::bf16, 0), 32u);
  EXPECT_EQ(tokens(kv_type::int8, 0), 64u);
  EXPECT_EQ(tokens(kv_type::int8, 5), 5u);
}

grid_config four_sequences(cut ranks) {
  return {.ranks = ranks, .page_tokens = 4, .pages = 64, .step_tokens = 9, .logit_rows = 9};
}

/// Biases, norms, windows, ranks that have no whole segments, and more decodes than there are
/// scores for at once.
TEST(ConfigMemory, OfGraphsIsOfEveryNodeThatIsRecorded) {
  constexpr dtype f32 = dtype::f32, bf16 = dtype::bf16, q8 = dtype::q8_0;
  for (auto how : {arithmetic::exact, arithmetic::tensor})
    for (cut ranks : {cut{1, 1}, {2, 1}, {1, 3}, {2, 2}, {4, 1}})
      for (auto types : {random_model::types{f32, bf16, f32}, {q8, q8, q8}, {bf16, f32, q8}}) {
        random_model m(rich_shape(6), types);
        begun on(memory_weights(m.weights), four_sequences(ranks), how);
        for (uint32_t r = 0; r < on.size(); ++r) {
          ASSERT_EQ(on.errors[r], "");
          auto config = begun::config_of(four_sequences(ranks), m.weights.shape, r);
          auto need = device_need(m.weights, config, how);
          EXPECT_EQ(need.graphs, on.devices[r].counted().graph_nodes * graph_node_bytes)
              << ranks.tensor << " x " << ranks.pipeline << " rank " << r;
        }
      }
}

/// Of a model that nobody has to have: a context of so many tiles that 16 sequences fill the
/// scores.
TEST(ConfigMemory, OfGraphsGrowsWithTheTurnsThatLongContextsTake) {
  model_shape s = small_shape(1, 32);
  s.context_max = 256 * 1024;
  random_model m(s, {});
  auto nodes = [&](uint32_t pages) {
    grid_config g{.page_tokens = 64, .pages = pages, .step_tokens = 64, .logit_rows = 64};
    auto config = begun::config_of(g, s, 0);
    auto room = device_room::of(m.weights, config, arithmetic::exact, 4096);
    return graph_nodes(m.weights, config.part, room);
  };
  const uint32_t tiles = 4096, buckets = 13, decode_buckets = 7;
  const uint64_t without = nodes(64) / (decode_buckets * 7);  // 64 tiles: no turns but one
  uint64_t more = 0;
  for (uint32_t t = 1; t <= tiles; t *= 2)
    for (uint32_t d = 1; d <= 64; d *= 2) more += 3 * (std::max(1u, d * t / 4096) - 1);
  EXPECT_EQ(nodes(tiles * attention_tile / 64), without * decode_buckets * buckets + more);
}

TEST(ConfigMemory, OfNcclIsOfEveryWayThatARankHas) {
  const model_shape s = small_shape(4, 96);
  auto ways = [&s](cut c, uint32_t rank) {
    return nccl_ways(part_for(s, c, rank / c.tensor, rank % c.tensor));
  };
  EXPECT_EQ(ways({1, 1}, 0), 0u);
  EXPECT_EQ(ways({2, 1}, 0), 3u) << "a ring's two, and logits";
  EXPECT_EQ(ways({4, 1}, 0), 5u);
  EXPECT_EQ(ways({4, 1}, 3), 3u);
  EXPECT_EQ(ways({1, 3}, 0), 1u);
  EXPECT_EQ(ways({1, 3}, 1), 2u);
  EXPECT_EQ(ways({2, 2}, 0), 3u) << "a ring's two, and rows to the next stage";
  EXPECT_EQ(ways({2, 2}, 2), 4u);
  // 16 channels of 4 MiB, 512 KiB and 4,915,200 bytes.
  auto c = check(plan_case{tiny, "", {2, 1}}.file(enough));
  ASSERT_TRUE(c.good()) << problems(c);
  EXPECT_EQ(c.needs[0].nccl, 3u * 16 * (4194304 + 524288 + 4915200));
  EXPECT_EQ(check(plan_case{tiny, "", {1, 1}}.file(enough)).needs[0].nccl, 0u);
}

}  // namespace
}  // namespace lethe::testing
