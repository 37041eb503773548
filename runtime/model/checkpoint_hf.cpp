#include <algorithm>
#include <unordered_map>

#include "runtime/base/limits.hpp"
#include "runtime/model/byte_reader.hpp"
#include "runtime/model/checkpoint_source.hpp"
#include "runtime/model/config_json.hpp"
#include "runtime/model/tensor_names.hpp"

namespace lethe {

namespace fs = std::filesystem;

namespace {

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

error no_weights(const fs::path& folder) {
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json",
                            "consolidated.00.pth", "tf_model.h5", "flax_model.msgpack"})
    if (is_there(folder / other))
      return fail(
          "{}: {} is not supported; supported: model.safetensors. Convert it once with "
          "transformers: AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(DIR, "
          "safe_serialization=True)",
          folder.string(), other);
  return fail("{}: has neither model.safetensors nor model.safetensors.index.json",
              folder.string());
}

/// Each tensor of the index must be in the file it names; each tensor of a file must be indexed.
result<void> check_index(const safetensors_index& index, const std::vector<safetensors_file>& files,
                         std::string_view where) {
  std::unordered_map<std::string_view, uint32_t> placed;
  for (const auto& [tensor, file] : index.tensors) placed.emplace(tensor, file);
  size_t found = 0;
  for (uint32_t i = 0; i < files.size(); ++i)
    for (const auto& t : files[i].tensors()) {
      auto at = placed.find(t.name);
      if (at == placed.end() || at->second != i)
        return fail("{}: {} holds tensor \"{}\", which the index {}", where, index.files[i],
                    printable(t.name),
                    at == placed.end() ? "does not know" : "places in another file");
      ++found;
    }
  if (found == index.tensors.size()) return {};
  for (uint32_t i = 0; i < files.size(); ++i)
    for (const auto& t : files[i].tensors()) placed.erase(t.name);
  check(!placed.empty());
  return fail("{}: tensor \"{}\" is not in {}", where, printable(placed.begin()->first),
              index.files[placed.begin()->second]);
}

result<std::vector<safetensors_file>> open_indexed(const fs::path& folder) {
  fs::path path = folder / "model.safetensors.index.json";
  auto json = read_text(path, limits::json_file_bytes_max);
  if (!json) return json.why();
  auto index = read_safetensors_index(*json, path.string());
  if (!index) return index.why();
  std::vector<safetensors_file> files;
  for (const auto& name : index->files) {
    if (!is_there(folder / name))
      return fail("{}: names {}, which is not there; download it", path.string(), printable(name));
    auto file = safetensors_file::open(folder / name);
    if (!file) return file.why();
    files.push_back(*std::move(file));
  }
  if (auto ok = check_index(*index, files, path.string()); !ok) return ok.why();
  return files;
}

result<std::vector<safetensors_file>> open_weights(const fs::path& folder) {
  if (is_there(folder / "model.safetensors")) {
    auto file = safetensors_file::open(folder / "model.safetensors");
    if (!file) return file.why();
    std::vector<safetensors_file> files;
    files.push_back(*std::move(file));
    return files;
  }
  if (is_there(folder / "model.safetensors.index.json")) return open_indexed(folder);
  return no_weights(folder);
}

/// Notes what cannot be taken as a matrix or vector; none then.
std::optional<raw_tensor> raw_of(const safetensors_tensor& t, const std::string& file,
                                 problem_list& problems) {
  auto name = name_from_hf(t.name);
  if (!name) {
    note(problems, "{}: tensor \"{}\" is unknown", file, printable(t.name));
    return std::nullopt;
  }
  if (!t.type) {
    note(problems, "{}: tensor \"{}\" has type {}; supported: F32, F16, BF16", file,
         printable(t.name), t.type_name);
    return std::nullopt;
  }
  bool fits = t.dims.size() == 1 || t.dims.size() == 2;
  for (uint64_t dim : t.dims) fits = fits && dim > 0 && dim <= UINT32_MAX;
  if (!fits) {
    note(problems, "{}: tensor \"{}\" is neither a vector nor a matrix", file, printable(t.name));
    return std::nullopt;
  }
  return raw_tensor{.name = *std::move(name),
                    .type = *t.type,
                    .rows = t.dims.size() == 2 ? uint32_t(t.dims[0]) : 1,
                    .cols = uint32_t(t.dims.back()),
                    .data = t.data};
}

void collect(checkpoint_parts& parts, problem_list& problems) {
  for (const auto& file : parts.source.shards)
    for (const auto& t : file.tensors()) {
      if (is_derived_buffer(t.name)) continue;
      // A tied head that was stored nevertheless is the embedding once more.
      if (parts.shape.tied && t.name == "lm_head.weight") continue;
      if (auto raw = raw_of(t, file.name(), problems)) parts.tensors.push_back(*std::move(raw));
    }
}

result<void> read_defaults(const fs::path& folder, generation_defaults& defaults) {
  fs::path path = folder / "generation_config.json";
  if (!is_there(path)) return {};
  auto json = read_text(path, limits::json_file_bytes_max);
  if (!json) return json.why();
  auto own = read_generation_config(*json, path.string());
  if (!own) return own.why();
  if (own->eos_ids.empty()) own->eos_ids = defaults.eos_ids;
  if (!own->bos_id) own->bos_id = defaults.bos_id;
  if (!own->pad_id) own->pad_id = defaults.pad_id;
  defaults = *std::move(own);
  return {};
}

}  // namespace

result<checkpoint_parts> read_hf_folder(const fs::path& folder, problem_list& problems) {
  checkpoint_parts parts;
  fs::path path = folder / "config.json";
  auto json = read_text(path, limits::json_file_bytes_max);
  if (!json) return json.why();
  auto config = read_config(*json, path.string(), problems);
  parts.shape = std::move(config.shape);
  parts.defaults = std::move(config.defaults);
  if (auto ok = read_defaults(folder, parts.defaults); !ok) note(problems, "{}", ok.why().text);
  auto weights = open_weights(folder);
  if (!weights) {
    note(problems, "{}", weights.why().text);
    return parts;
  }
  parts.source.shards = *std::move(weights);
  collect(parts, problems);
  return parts;
}

}  // namespace lethe
