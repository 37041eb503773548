#include "parallel/device_weights.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "kernels/panels.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/model/file_weights.hpp"
#include "runtime/model/load.hpp"
#include "tests/cuda/emulated_device.hpp"
#include "tests/e2e/quantized_model.hpp"
#include "tests/unit/hollow_model.hpp"
#include "tests/unit/model_files.hpp"
#include "tests/unit/parallel_grid_run.hpp"
#include "tests/unit/parallel_memory_weights.hpp"
#include "tests/unit/parallel_random_model.hpp"

// Weights go from files, through pinned pieces, to a device: the bits of those in memory.

namespace lethe::testing {
namespace {

namespace fs = std::filesystem;
using emulated::device;

constexpr uint32_t types_of_all = dtype_count;

checkpoint opened(const fs::path& path) {
  auto made = checkpoint::open(path);
  if (!made) throw std::runtime_error(made.why().text);
  return *std::move(made);
}
fs::path published(const std::string& name) { return fs::path(places::source) / "models" / name; }

shard_part part_of(const model_shape& shape, cut c, uint32_t rank) {
  return part_for(shape, c, rank / c.tensor, rank % c.tensor);
}

/// What a rank has of a weight, on the device and in memory.
void expect_panels(const matrix& there, const matrix& here, const product_part& part) {
  const weight_piece want = piece_of(here, part);
  if (want.bytes == 0) return;
  const size_t pitch = want.count == 1 ? want.bytes : (want.bytes + 63) / 64 * 64;
  for (size_t i = 0; i < want.count; ++i)
    ASSERT_EQ(std::memcmp(there.panels + i * pitch, want.from + i * want.pitch, want.bytes), 0)
        << "stretch " << i << " of " << want.count;
}

void expect_floats(const float* there, const float* here, size_t count) {
  ASSERT_EQ(there == nullptr, here == nullptr);
  ASSERT_TRUE(here == nullptr || std::memcmp(there, here, count * sizeof(float)) == 0);
}

void expect_layer(const device_weights& d, const model_weights& here, uint32_t layer) {
  const auto& [a, m] = d.get().layers[layer];
  const auto& [b, n] = here.layers[layer];
  const weight_parts& parts = d.parts();
  expect_floats(a.norm, b.norm, here.shape.hidden);
  expect_panels(a.q, b.q, parts.q()), expect_panels(a.k, b.k, parts.kv());
  expect_panels(a.v, b.v, parts.kv()), expect_panels(a.o, b.o, parts.spread(b.o));
  expect_floats(a.q_bias, b.q_bias, b.q.rows), expect_floats(a.k_bias, b.k_bias, b.k.rows);
  expect_floats(a.v_bias, b.v_bias, b.v.rows);
  expect_floats(a.o_bias, b.o_bias, here.shape.hidden);
  expect_floats(a.q_norm, b.q_norm, here.shape.head_dim);
  expect_floats(a.k_norm, b.k_norm, here.shape.head_dim);
  expect_floats(m.norm, n.norm, here.shape.hidden);
  expect_panels(m.gate, n.gate, parts.ffn()), expect_panels(m.up, n.up, parts.ffn());
  expect_panels(m.down, n.down, parts.spread(n.down));
  expect_floats(m.gate_bias, n.gate_bias, n.gate.rows);
  expect_floats(m.up_bias, n.up_bias, n.up.rows);
  expect_floats(m.down_bias, n.down_bias, here.shape.hidden);
}

void expect_all(const device_weights& d, const model_weights& here, const shard_part& part) {
  if (part.first()) expect_panels(d.get().embed, here.embed, {0, here.embed.rows, 0, segments});
  for (uint32_t i = part.layers.begin; i < part.layers.end; ++i) expect_layer(d, here, i);
  if (!part.last()) return;
  expect_floats(d.get().norm, here.norm, here.shape.hidden);
  expect_panels(d.get().head, here.head, d.parts().vocab());
}

/// Each rank of each cut that fits, by threads and through pieces as said.
void expect_the_bits(const weight_source& from, const model_weights& here,
                     const upload_options& how) {
  for (cut c : {cut{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {4, 1}, {8, 1}})
    for (uint32_t rank = 0; check_cut(here.shape, c) && rank < c.tensor * c.pipeline; ++rank) {
      SCOPED_TRACE(fmt::format("rank {} of {} x {}, pieces of {}", rank, c.tensor, c.pipeline,
                               how.piece_bytes));
      const shard_part part = part_of(here.shape, c, rank);
      device on;
      auto loaded = device_weights::load(on, from, part, how);
      ASSERT_TRUE(loaded) << loaded.why().text;
      expect_all(**loaded, here, part);
    }
}

/// As a file has them, or converted on their way.
void expect_a_files_bits(const fs::path& path, std::optional<dtype> quantize = {}) {
  SCOPED_TRACE(path.string() + (quantize ? std::string(" as ") + name_of(*quantize) : ""));
  const checkpoint file = opened(path);
  auto in_memory = loaded_model::load(file, {.quantize = quantize});
  auto source = file_weights::open(file, quantize);
  ASSERT_TRUE(in_memory && source);
  expect_the_bits(**source, (*in_memory)->weights(), {.threads = 3, .piece_bytes = 256 << 10});
  expect_the_bits(**source, (*in_memory)->weights(), {.piece_bytes = weight_cuts::room_least});
}

TEST(DeviceWeights, OfFilesAreTheBitsOfThoseInMemory) {
  LETHE_NEEDS_VECTORS();
  for (const char* name :
       {"llama-tiny", "llama-tiny-f16", "llama-tiny-sharded", "qwen2-tiny", "qwen3-tiny"}) {
    expect_a_files_bits(test::vectors() / "models" / name);
    expect_a_files_bits(test::vectors() / "gguf" / (std::string(name) + ".gguf"));
  }
}

TEST(DeviceWeights, OfFilesInEveryTypeAreTheBitsOfThoseInMemory) {
  const checkpoint ember = opened(published("ember"));
  test::temporary_folder folder;
  for (uint32_t t = 0; t < types_of_all; ++t) {
    auto path = folder / "typed.gguf";
    e2e::write_mixed(ember, path, [t](std::string_view) { return dtype(t); });
    expect_a_files_bits(path);
  }
}

TEST(DeviceWeights, ConvertedOnTheirWayAreTheBitsOfThoseInMemory) {
  for (dtype type : {dtype::q4_0, dtype::q4_k}) expect_a_files_bits(published("ember"), type);
  expect_a_files_bits(published("ember-draft"), dtype::q8_0);
}

/// Columns that nothing divides, biases and norms that no line holds whole, heads that lie across
/// panels.
TEST(DeviceWeights, OfOddSizesAreTheBitsOfThoseInMemory) {
  constexpr dtype f32 = dtype::f32, bf16 = dtype::bf16, q8 = dtype::q8_0;
  for (bool tied : {true, false}) {
    model_shape s = rich_shape(6);
    s.heads = 6, s.kv_heads = 3, s.ffn = 101, s.tied = tied;
    for (auto types : {random_model::types{f32, bf16, f32}, {bf16, f32, bf16}}) {
      random_model m(s, types);
      for (size_t bytes : {8192, 12288, 1 << 20})
        expect_the_bits(memory_weights(m.weights), m.weights, {.threads = 2, .piece_bytes = bytes});
    }
    s.ffn = 96;
    random_model m(s, {q8, q8, q8});
    expect_the_bits(memory_weights(m.weights), m.weights, {.piece_bytes = 8192});
  }
}

/// A source that looks at the device whenever it is asked.
class watching : public memory_weights {
 public:
  watching(const model_weights& w, const device& d) : memory_weights(w), device_(d) {}
  void read(const matrix& m, const panel_part& part, std::byte* to) const override {
    ++(device_.busy() ? beside : before);
    pieces_.insert(uintptr_t(to) / 8192);
    memory_weights::read(m, part, to);
  }
  using memory_weights::read;
  size_t places() const { return pieces_.size(); }
  mutable uint32_t before = 0, beside = 0;

 private:
  const device& device_;
  mutable std::set<uintptr_t> pieces_;
};

TEST(DeviceWeights, AreReadWhileThoseBeforeAreCopied) {
  random_model m(small_shape(2, 96), {});
  device on;
  watching source(m.weights, on);
  const auto waited = on.counted().waits;
  auto loaded =
      device_weights::load(on, source, part_of(m.weights.shape, {1, 1}, 0), {.piece_bytes = 8192});
  ASSERT_TRUE(loaded) << loaded.why().text;
  const size_t pieces = (*loaded)->bytes() / 8192;
  EXPECT_LT(source.before, 9u) << "those of the first piece only";
  EXPECT_GT(source.beside, pieces);
  EXPECT_LE(source.places(), 4u) << "two pieces, which need not begin at multiples";
  EXPECT_GT(on.counted().waits - waited, pieces) << "one before each piece is used again";
}

TEST(DeviceWeights, LieOnceWhereTwoMatricesShareThem) {
  model_shape s = small_shape(1, 32);
  s.tied = true;
  random_model tied(s, {});
  s.tied = false;
  random_model apart(s, {});
  auto bytes = [](const model_weights& w) {
    device on;
    auto loaded = device_weights::load(on, memory_weights(w), part_of(w.shape, {1, 1}, 0),
                                       {.piece_bytes = 8192});
    return (*loaded)->bytes();
  };
  const matrix& table = tied.weights.embed;
  EXPECT_EQ(bytes(apart.weights) - bytes(tied.weights),
            matrix_bytes(table.type, table.rows, table.cols));
}

TEST(DeviceWeights, GiveBackWhatTheyCameThrough) {
  random_model m(small_shape(1, 32), {});
  device on;
  auto loaded = device_weights::load(on, memory_weights(m.weights),
                                     part_of(m.weights.shape, {1, 1}, 0), {.piece_bytes = 8192});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(on.left_full(), std::vector<size_t>{2 * 8192}) << "given back, with public bytes";
  EXPECT_FALSE(on.busy());
}

TEST(DeviceWeights, TellHowFarTheyAre) {
  random_model m(small_shape(2, 96), {});
  device on;
  std::vector<uint64_t> told;
  auto loaded =
      device_weights::load(on, memory_weights(m.weights), part_of(m.weights.shape, {2, 1}, 1),
                           {.progress =
                                [&](uint64_t done, uint64_t all) {
                                  told.push_back(done);
                                  EXPECT_LE(done, all);
                                },
                            .piece_bytes = 8192});
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.size(), ((*loaded)->bytes() + 8191) / 8192) << "pieces are full but the last";
  EXPECT_EQ(told.back(), (*loaded)->bytes());
}

TEST(DeviceWeights, SayThatTheDeviceFailed) {
  random_model m(small_shape(1, 32), {});
  device on;
  on.break_down();
  auto loaded = device_weights::load(on, memory_weights(m.weights),
                                     part_of(m.weights.shape, {1, 1}, 0), {.piece_bytes = 8192});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.why().text, "shard: the weights did not reach the device: CUDA error 719");
}

/// Whose device memory is none of this process's: what is copied there is gone. It looks at this
/// process whenever a piece is full.
class far_device : public accelerator {
 public:
  device_error use() override { return 0; }
  std::byte* allocate(memory_kind kind, size_t bytes) override {
    if (kind == memory_kind::pinned) pinned += bytes;
    if (kind == memory_kind::device) return reinterpret_cast<std::byte*>(uintptr_t{1} << 46);
    return static_cast<std::byte*>(std::aligned_alloc(256, bytes));
  }
  void free(memory_kind kind, std::byte* at, size_t) override {
    if (kind == memory_kind::pinned) std::free(at);
  }
  device_stream stream() override { return nullptr; }
  device_error copy(void*, const void*, size_t bytes) override {
    copied += bytes, most = std::max(most, own_memory());
    return 0;
  }
  device_error copy_stretches(void*, const void*, size_t, size_t, size_t) override { return 1; }
  device_error begin_graph() override { return 1; }
  device_error end_graph(device_graph&) override { return 1; }
  device_error queue(device_graph) override { return 1; }
  void free(device_graph) override {}
  device_error finish() override { return 0; }
  device_error ask(bool& done) override { return done = true, 0; }

  /// What of this process is in memory but its files.
  static size_t own_memory() {
    std::ifstream status("/proc/self/status");
    size_t kib = 0, all = 0;
    for (std::string word; status >> word;)
      if ((word == "RssAnon:" || word == "RssShmem:") && status >> kib) all += kib * 1024;
    return all;
  }
  size_t pinned = 0, copied = 0, most = 0;
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(DeviceWeights, AreNeverInTheHostsMemoryButWhatTheyGoThrough) {
  test::temporary_folder folder;
  write_hollow(folder);
  const checkpoint file = opened(folder.path());
  constexpr size_t more = 4 << 20;
  for (cut c : {cut{1, 1}, cut{2, 1}}) {
    auto source = file_weights::open(file, {});
    ASSERT_TRUE(source) << source.why().text;
    far_device on;
    const size_t before = far_device::own_memory();
    auto loaded = device_weights::load(on, **source, part_of(file.shape(), c, 0), {.threads = 2});
    ASSERT_TRUE(loaded) << loaded.why().text;
    EXPECT_EQ(on.pinned, upload_pieces * upload_piece_bytes);
    EXPECT_GT(on.copied, size_t{50} << 20);
    EXPECT_LT(on.most, before + on.pinned + more);
    EXPECT_LT(far_device::own_memory(), before + more);
  }
  // What this would see of weights in memory.
  const size_t before = far_device::own_memory();
  size_t most = 0;
  auto in_memory = loaded_model::load(file, {.progress = [&](uint64_t, uint64_t) {
                                        most = std::max(most, far_device::own_memory());
                                      }});
  ASSERT_TRUE(in_memory);
  EXPECT_GT(most, before + upload_pieces * upload_piece_bytes + more);
}
#endif

/// Where a file has become shorter there are no bits to go on with.
TEST(DeviceWeightsDeathTest, EndTheirProcessWithAFileThatBecameShorter) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  test::temporary_folder folder;
  auto weights = write_hollow(folder);
  auto shorten_and_load = [&] {
    const checkpoint file = opened(folder.path());
    auto source = file_weights::open(file, {});
    fs::resize_file(weights, size_t{1} << 20);
    far_device on;
    (void)device_weights::load(on, **source, part_of(file.shape(), {1, 1}, 0));
  };
  EXPECT_EXIT(shorten_and_load(), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace lethe::testing
