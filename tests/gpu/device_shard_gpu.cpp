#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "kernels/cpu_row.hpp"
#include "parallel/cuda/cuda_accelerator.hpp"
#include "tests/unit/parallel_device_models.hpp"
#include "tests/unit/parallel_random_model.hpp"

// A model's steps on a GPU, with graphs and without, against the CPU's shard: random models that
// have all a family may have, then those of files.
//   device_shard_gpu [--small] [MODEL...]   run in the repository; MODEL: a folder or a .gguf file

namespace lethe {

/// This program has the reference alone: the vectors' rows need flags, and give the same bits.
extern const cpu_row reference;
const cpu_row& best_cpu_row() { return reference; }

namespace testing {
namespace {

namespace fs = std::filesystem;
constexpr kv_type kv_types[] = {kv_type::f32, kv_type::bf16, kv_type::int8};
constexpr const char* names_of_kv[] = {"f32", "bf16", "int8"};

/// What was checked, and how much of it failed.
struct tally {
  uint32_t checked = 0, failed = 0;
  void add(const std::string& what, const std::string& fault) {
    std::printf("%-80s %s\n", what.c_str(), fault.empty() ? "ok" : fault.c_str());
    std::fflush(stdout);
    ++checked;
    failed += !fault.empty();
  }
};

/// How much is said: of a sanitizer's instructions each takes a hundred.
struct sizes {
  uint32_t longest = 139, some = 18, tokens = 24, chunk = 37;
};
constexpr sizes small{.longest = 21, .some = 6, .tokens = 3, .chunk = 13};

model_shape shape_of_all() {
  model_shape s = small_shape(3, 96);
  s.qkv_bias = s.o_bias = s.mlp_bias = s.qk_norm = s.tied = true;
  s.window = {0, 5, 70};
  return s;
}

speech speech_of(uint32_t vocab, const sizes& size, kv_type kv) {
  return {{random_prompt(size.longest, vocab, 1), random_prompt(1, vocab, 2),
           random_prompt(size.some, vocab, 3)},
          size.tokens,
          kv};
}

struct model_case {
  std::string name;
  const model_weights& weights;
};

/// By the exact table and by tensor cores, in each type of keys and values.
void check_model(accelerator& gpu, const model_case& m, const sizes& size, tally& all) {
  manner how{.page_tokens = 8, .chunk = size.chunk};
  for (kv_type kv : kv_types) {
    speech s = speech_of(m.weights.shape.vocab, size, kv);
    std::string what = m.name + ", keys and values " + names_of_kv[size_t(kv)];
    all.add(what, exact_fault({gpu, cuda}, m.weights, s, how));
    all.add(what + ", by tensor cores", tensor_fault({gpu, cuda_tensor}, m.weights, s, how));
  }
}

void check_random_models(accelerator& gpu, const sizes& size, tally& all) {
  constexpr dtype f32 = dtype::f32, bf16 = dtype::bf16, q8 = dtype::q8_0;
  for (auto t :
       {random_model::types{f32, f32, f32}, {bf16, q8, bf16}, {q8, q8, q8}, {bf16, bf16, bf16}}) {
    random_model m(shape_of_all(), t);
    std::string name = std::string("random, ") + name_of(t.attention) + " " + name_of(t.mlp) + " " +
                       name_of(t.vocabulary);
    check_model(gpu, {name, m.weights}, size, all);
  }
}

/// A model of a file, as it is there or with other weights.
struct file_case {
  fs::path path;
  std::optional<dtype> quantize;
  std::unique_ptr<loaded_model> loaded;
  std::string name() const {
    return path.string() + (quantize ? std::string(", as ") + name_of(*quantize) : "");
  }
};

/// Those of the repository, and the published ones where they are.
std::vector<file_case> files_here() {
  std::vector<file_case> all;
  for (const char* name : {"models/tiny", "models/ember-draft", "models/ember"})
    all.push_back({name});
  all.push_back({"models/ember", dtype::q8_0});
  all.push_back({"models/ember", dtype::q4_k});
  const char* set = std::getenv("LETHE_VECTORS");
  fs::path vectors = set ? set : "../shared/vectors";
  if (!fs::exists(vectors / "models"))
    std::printf("left out: the published tiny models; LETHE_VECTORS says where their folder is\n");
  else
    for (const char* kind : {"models", "gguf"})
      for (const auto& each : fs::directory_iterator(vectors / kind)) all.push_back({each.path()});
  std::ranges::sort(all, {}, &file_case::name);
  return all;
}

/// Before there need be a GPU: that files can be read is seen anywhere.
void load_files(std::vector<file_case>& files, tally& all) {
  for (file_case& file : files) {
    auto loaded = load_file(file.path, file.quantize);
    all.add("load " + file.name(), loaded ? "" : loaded.why().text);
    if (loaded) file.loaded = *std::move(loaded);
  }
}

int run_all(std::vector<file_case> files, const sizes& size) {
  tally all;
  load_files(files, all);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU\n");
    return all.failed ? 1 : 77;
  }
  auto gpu = open_cuda(0);
  if (!gpu) {
    std::printf("FAILED: %s\n", gpu.why().text.c_str());
    return 1;
  }
  check_random_models(**gpu, size, all);
  for (const file_case& file : files)
    if (file.loaded) check_model(**gpu, {file.name(), file.loaded->weights()}, size, all);
  std::printf("%u checks, %u failed\n", all.checked, all.failed);
  return all.failed != 0;
}

}  // namespace
}  // namespace testing
}  // namespace lethe

int main(int argc, char** argv) {
  using namespace lethe::testing;
  sizes size;
  std::vector<file_case> files;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--small") == 0)
      size = small;
    else
      files.push_back({argv[i]});
  if (files.empty()) files = files_here();
  try {
    return run_all(std::move(files), size);
  } catch (const std::exception& e) {
    std::printf("FAILED: %s\n", e.what());
    return 1;
  }
}
