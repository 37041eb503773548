#include "runtime/model/load.hpp"
#include "tests/places.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "kernels/cpu_row.hpp"
#include "parallel/weights_read.hpp"
#include "runtime/model/load_memory.hpp"
#include "runtime/model/quantize.hpp"

namespace lethe {
namespace {

namespace fs = std::filesystem;
using model = std::unique_ptr<loaded_model>;

constexpr const char* names[] = {"llama-tiny", "llama-tiny-f16", "llama-tiny-sharded", "qwen2-tiny",
                                 "qwen3-tiny"};

fs::path vectors() {
  const char* there = std::getenv("LETHE_VECTORS");
  return there ? there : places::vectors;
}

/// Skips, or fails where everything must be there.
#define NEEDS_VECTORS()                                                                    \
  if (!fs::exists(vectors() / "models")) {                                                 \
    ASSERT_STRNE(std::getenv("CI") ? std::getenv("CI") : "", "true") << "no test vectors"; \
    GTEST_SKIP() << "no test vectors: set LETHE_VECTORS to check the tiny models";         \
  }

checkpoint opened(const fs::path& path) {
  auto made = checkpoint::open(path);
  if (!made) ADD_FAILURE() << made.why().text;
  return *std::move(made);
}
checkpoint hf(const std::string& name) { return opened(vectors() / "models" / name); }
checkpoint gguf(const std::string& name) { return opened(vectors() / "gguf" / (name + ".gguf")); }

model loaded(const checkpoint& from, const load_options& options = {}) {
  auto made = loaded_model::load(from, options);
  if (!made) ADD_FAILURE() << made.why().text;
  return *std::move(made);
}

struct named_matrix {
  std::string name;
  matrix m;
};
std::vector<named_matrix> matrices_of(const model_weights& w) {
  std::vector<named_matrix> all{{"embed", w.embed}, {w.shape.tied ? "embed" : "head", w.head}};
  for (uint32_t i = 0; i < w.layers.size(); ++i) {
    std::string layer = "layers." + std::to_string(i) + ".";
    const auto& a = w.layers[i].attention;
    const auto& f = w.layers[i].mlp;
    for (auto& [name, m] : {named_matrix{"q", a.q},
                            {"k", a.k},
                            {"v", a.v},
                            {"o", a.o},
                            {"gate", f.gate},
                            {"up", f.up},
                            {"down", f.down}}) {
      all.push_back({layer + name, m});
    }
  }
  return all;
}

std::vector<std::pair<std::string, const float*>> vectors_of(const model_weights& w) {
  std::vector<std::pair<std::string, const float*>> all{{"norm", w.norm}};
  for (uint32_t i = 0; i < w.layers.size(); ++i) {
    std::string layer = "layers." + std::to_string(i) + ".";
    const auto& a = w.layers[i].attention;
    const auto& f = w.layers[i].mlp;
    for (auto [name, v] : {std::pair{"attn_norm", a.norm},
                           {"q_bias", a.q_bias},
                           {"k_bias", a.k_bias},
                           {"v_bias", a.v_bias},
                           {"o_bias", a.o_bias},
                           {"q_norm", a.q_norm},
                           {"k_norm", a.k_norm},
                           {"ffn_norm", f.norm},
                           {"gate_bias", f.gate_bias},
                           {"up_bias", f.up_bias},
                           {"down_bias", f.down_bias}}) {
      all.emplace_back(layer + name, v);
    }
  }
  return all;
}

std::vector<float> row_in(const matrix& m, uint32_t r) {
  std::vector<float> row(m.cols);
  find_cpu_row("reference")->row_to_float(m, r, row.data());
  return row;
}

size_t row_bytes(dtype type, uint32_t cols) {
  return size_t{cols} / block_elements(type) * block_bytes(type);
}

/// Row r of the file, in the file's order.
std::vector<float> row_in(const raw_tensor& t, uint32_t r) {
  std::vector<float> row(t.cols);
  dequantize_row(t.type, t.data.data() + r * row_bytes(t.type, t.cols), row.data(), t.cols);
  return row;
}

uint32_t in_file(const checkpoint& from, const raw_tensor& t, uint32_t r) {
  return t.interleaved_rope ? unpermuted_row(r, from.shape().head_dim) : r;
}

/// What quantizing and reading back makes of a row.
std::vector<float> through(dtype type, const std::vector<float>& row) {
  std::vector<std::byte> bytes(row_bytes(type, uint32_t(row.size())));
  quantize_row(type, row.data(), row.size(), bytes.data());
  std::vector<float> back(row.size());
  dequantize_row(type, bytes.data(), back.data(), back.size());
  return back;
}

void expect_the_files_numbers(const checkpoint& from, const model_weights& w) {
  for (const auto& [name, m] : matrices_of(w)) {
    const raw_tensor* t = from.find(name);
    ASSERT_TRUE(t) << name;
    ASSERT_EQ(m.type, t->type) << name;
    ASSERT_EQ(m.rows, t->rows) << name;
    ASSERT_EQ(m.cols, t->cols) << name;
    EXPECT_EQ(uintptr_t(m.panels) % 64, 0u);
    for (uint32_t r = 0; r < m.rows; ++r) {
      ASSERT_EQ(row_in(m, r), row_in(*t, in_file(from, *t, r))) << name << " row " << r;
    }
  }
  for (const auto& [name, v] : vectors_of(w)) {
    const raw_tensor* t = from.find(name);
    ASSERT_EQ(v == nullptr, t == nullptr) << name;
    if (!t) continue;
    EXPECT_EQ(uintptr_t(v) % 64, 0u);
    auto expected = row_in(*t, 0);
    for (uint32_t i = 0; i < t->cols; ++i) ASSERT_EQ(v[i], expected[in_file(from, *t, i)]) << name;
  }
}

TEST(Load, GivesTheFilesNumbers) {
  NEEDS_VECTORS();
  for (const char* name : names) {
    SCOPED_TRACE(name);
    for (const checkpoint& from : {hf(name), gguf(name)}) {
      expect_the_files_numbers(from, loaded(from, {.threads = 3})->weights());
    }
  }
}

TEST(Load, GivesTheSameModelFromEitherFormat) {
  NEEDS_VECTORS();
  for (const char* name : names) {
    SCOPED_TRACE(name);
    auto one = loaded(hf(name)), other = loaded(gguf(name));
    auto ours = matrices_of(one->weights()), theirs = matrices_of(other->weights());
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      for (uint32_t r = 0; r < ours[i].m.rows; ++r) {
        ASSERT_EQ(row_in(ours[i].m, r), row_in(theirs[i].m, r)) << ours[i].name << " row " << r;
      }
    }
    auto our_vectors = vectors_of(one->weights()), their_vectors = vectors_of(other->weights());
    auto from = hf(name);
    for (size_t i = 0; i < our_vectors.size(); ++i) {
      const auto& [tensor, v] = our_vectors[i];
      if (!v) continue;
      size_t bytes = from.find(tensor)->cols * sizeof(float);
      ASSERT_EQ(std::memcmp(v, their_vectors[i].second, bytes), 0) << tensor;
    }
  }
}

TEST(Load, SharesTheTableOfATiedModel) {
  NEEDS_VECTORS();
  auto tied = loaded(hf("qwen2-tiny")), untied = loaded(hf("llama-tiny"));
  EXPECT_EQ(tied->weights().head.panels, tied->weights().embed.panels);
  EXPECT_NE(untied->weights().head.panels, untied->weights().embed.panels);
}

TEST(Load, DoesNotDependOnThreads) {
  NEEDS_VECTORS();
  auto from = hf("llama-tiny");
  for (auto quantize : {std::optional<dtype>(), std::optional(dtype::q8_0)}) {
    auto one = loaded(from, {.quantize = quantize}), four = loaded(from, {quantize, 4, {}});
    ASSERT_EQ(one->bytes(), four->bytes());
    auto at = one->weights().embed.panels, other = four->weights().embed.panels;
    EXPECT_EQ(std::memcmp(at, other,
                          matrix_bytes(one->weights().embed.type, one->weights().embed.rows,
                                       one->weights().embed.cols)),
              0);
  }
}

TEST(Load, QuantizesRowByRow) {
  NEEDS_VECTORS();
  auto from = hf("llama-tiny-f16");
  for (dtype type : {dtype::q8_0, dtype::q4_0, dtype::q5_1, dtype::q4_k}) {
    SCOPED_TRACE(name_of(type));
    auto made = loaded(from, {type, 2, {}});
    const auto& kept = made->unconverted();
    uint32_t converted = 0;
    for (const auto& [name, m] : matrices_of(made->weights())) {
      bool table = name == "embed" || name == "head";
      bool keeps = std::find(kept.begin(), kept.end(), name) != kept.end();
      dtype expected = table ? dtype::q8_0 : type;
      EXPECT_EQ(keeps, m.cols % block_elements(expected) != 0) << name;
      ASSERT_EQ(m.type, keeps ? from.find(name)->type : expected) << name;
      for (uint32_t r = 0; r < m.rows; ++r) {
        auto row = row_in(*from.find(name), r);
        ASSERT_EQ(row_in(m, r), keeps ? row : through(m.type, row)) << name << " row " << r;
      }
      converted += !keeps;
    }
    EXPECT_GT(converted, 0u);
  }
}

TEST(Load, QuantizesTheSameFromEitherFormat) {
  NEEDS_VECTORS();
  auto one = loaded(hf("llama-tiny"), {dtype::q4_0, 1, {}});
  auto other = loaded(gguf("llama-tiny"), {dtype::q4_0, 1, {}});
  auto ours = matrices_of(one->weights()), theirs = matrices_of(other->weights());
  for (size_t i = 0; i < ours.size(); ++i) {
    const matrix& m = ours[i].m;
    EXPECT_EQ(std::memcmp(m.panels, theirs[i].m.panels, matrix_bytes(m.type, m.rows, m.cols)), 0)
        << ours[i].name;
  }
}

TEST(Load, RefusesFloatsAsQuantizedType) {
  NEEDS_VECTORS();
  auto refused = loaded_model::load(hf("llama-tiny"), {dtype::bf16, 1, {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.why().text, "quant: bf16 is not a block type; take q8_0 or q4_0");
}

TEST(Load, SealsItsMemory) {
  NEEDS_VECTORS();
  auto made = loaded(hf("qwen3-tiny"));
  int fd = made->memfd();
  EXPECT_EQ(mmap(nullptr, made->bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(ftruncate(fd, 0), -1);
  EXPECT_EQ(ftruncate(fd, off_t(made->bytes()) + 4096), -1);
  EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
  void* embed = const_cast<std::byte*>(made->weights().embed.panels);
  auto page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(embed) & ~uintptr_t{4095});
  EXPECT_EQ(mprotect(page, 4096, PROT_READ | PROT_WRITE), -1);
  void* other = mmap(nullptr, made->bytes(), PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(other, MAP_FAILED);
  munmap(other, made->bytes());
}

/// Bytes of a mapping that huge pages of shared memory stand for.
uint64_t on_huge_pages(const void* at) {
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      inside = begin == reinterpret_cast<uintptr_t>(at);
    uint64_t kib = 0;
    if (inside && std::sscanf(line.c_str(), "ShmemPmdMapped: %lu kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

/// Whether this kernel makes a huge page of shared memory when it is asked to.
bool makes_huge_pages() {
  auto made = sealed_memory::make(huge_page);
  if (!made) return false;
  made->writable()[0] = std::byte{1};
  return ::madvise(made->writable().data(), huge_page, madvise_collapse) == 0;
}

TEST(Load, WeightsLieOnHugePages) {
  auto file = checkpoint::open(std::string(places::source) + "/models/ember");
  ASSERT_TRUE(file);
  auto whole = loaded(*file);
  const auto* first = reinterpret_cast<const std::byte*>(whole->weights().embed.panels);
  for (const auto& w : matrices_of(whole->weights()))
    first = std::min(first, reinterpret_cast<const std::byte*>(w.m.panels));
  const auto begin = reinterpret_cast<uintptr_t>(first) & ~uintptr_t{huge_page - 1};
  const auto* at = reinterpret_cast<const std::byte*>(begin);
  size_t read = 0;  // what is read is mapped
  for (size_t i = 0; i < whole->bytes(); i += 4096) read += at[i] == std::byte{0};
  EXPECT_LT(read, whole->bytes());
  if (!makes_huge_pages()) GTEST_SKIP() << "this kernel makes none of shared memory when asked";
  EXPECT_GE(on_huge_pages(at), huge_page);
  EXPECT_LE(on_huge_pages(at), whole->bytes());
}

TEST(Load, AttachesToWhatAnotherProcessHasLoaded) {
  NEEDS_VECTORS();
  auto file = hf("llama-tiny");
  auto made = loaded(hf("llama-tiny"), {.quantize = dtype::q8_0});
  auto other = loaded_model::attach(file, {.quantize = dtype::q8_0}, ::dup(made->memfd()));
  ASSERT_TRUE(other) << other.why().text;
  auto ours = matrices_of(made->weights()), theirs = matrices_of((*other)->weights());
  for (size_t i = 0; i < ours.size(); ++i) {
    const matrix& m = ours[i].m;
    EXPECT_EQ(std::memcmp(m.panels, theirs[i].m.panels, matrix_bytes(m.type, m.rows, m.cols)), 0)
        << ours[i].name;
  }
  // Of another layout, or still to be changed by whoever has it.
  EXPECT_FALSE(loaded_model::attach(file, {}, ::dup(made->memfd())));
  const int open = ::memfd_create("weights", MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(open, off_t(made->bytes())), 0);
  EXPECT_FALSE(loaded_model::attach(file, {.quantize = dtype::q8_0}, open));
}

/// What a process has of it, as its blocks are counted.
uint64_t kept(const loaded_model& m) {
  struct stat file {};
  EXPECT_EQ(::fstat(m.memfd(), &file), 0);
  return uint64_t(file.st_blocks) * 512;
}

void expect_own_part(const checkpoint& from, const loaded_model& whole, const load_options& how) {
  auto [c, of] = how.share;
  uint64_t most = 0;
  auto options = how;
  options.progress = [&most](uint64_t, uint64_t all) { most = all; };
  auto own = loaded_model::load(from, options);
  ASSERT_TRUE(own) << own.why().text;
  auto part = part_for(from.shape(), c, of[0] / c.tensor, of[0] % c.tensor);
  auto here = reads_of((*own)->weights(), part), there = reads_of(whole.weights(), part);
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) ASSERT_TRUE(std::ranges::equal(here[i], there[i])) << i;
  EXPECT_EQ(most<whole.bytes(), c.tensor * c.pipeline> 1);
  // Memory comes by the page.
  EXPECT_LT(kept(**own), most + (here.size() + 200) * 4096);
}

TEST(Load, OfSomeRanksIsAllThatTheyReadAndLittleElse) {
  NEEDS_VECTORS();
  for (auto [path, type] :
       {std::pair(fs::path(places::source) / "models/ember", std::optional<dtype>()),
        {vectors() / "models/llama-tiny", {}},
        {vectors() / "models/llama-tiny", dtype::q8_0}}) {
    auto from = opened(path);
    auto whole = loaded(from, {.quantize = type});
    for (cut c : {cut{1, 1}, cut{2, 1}, cut{1, 2}, cut{2, 2}})
      for (uint32_t rank = 0; rank < c.tensor * c.pipeline; ++rank) {
        SCOPED_TRACE(fmt::format("rank {} of {} x {}", rank, c.tensor, c.pipeline));
        expect_own_part(from, *whole, {.quantize = type, .threads = 2, .share = {c, {rank}}});
      }
  }
}

TEST(Load, ReportsProgressUpToTheEnd) {
  NEEDS_VECTORS();
  uint64_t last = 0, all = 0;
  auto made = loaded(hf("llama-tiny"), {.threads = 2, .progress = [&](uint64_t done, uint64_t of) {
                                          EXPECT_GE(done, last);
                                          last = done;
                                          all = of;
                                        }});
  EXPECT_EQ(last, made->bytes());
  EXPECT_EQ(all, made->bytes());
}

}  // namespace
}  // namespace lethe
