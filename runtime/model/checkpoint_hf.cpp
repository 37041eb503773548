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

/// The first file of the folder whose name ends so.
std::string file_ending(const fs::path& folder, std::string_view ending) {
  std::error_code failed;
  std::string first;
  for (fs::directory_iterator at(folder, failed), end; at != end; at.increment(failed)) {
    auto name = at->path().filename().string();
    if (name.ends_with(ending) && (first.empty() || name < first)) first = name;
  }
  return printable(first);
}

error no_weights(const fs::path& folder) {
  if (auto part = file_ending(folder, ".safetensors"); !part.empty())
    return fail(
        "{}: holds {}, but neither model.safetensors nor model.safetensors.index.json; "
        "download the index",
        folder.string(), part);
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

error no_config(const fs::path& folder) {
  if (auto gguf = file_ending(folder, ".gguf"); !gguf.empty())
    return fail("{}: has no config.json, but {}: name that file instead of the folder",
                folder.string(), gguf);
  if (is_there(folder / "adapter_config.json"))
    return fail("{}: an adapter is not supported; merge it into its base model and save that",
                folder.string());
  return fail("{}: has no config.json; a model is a Hugging Face folder or a .gguf file",
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
      if (at == placed.end() && is_derived_buffer(t.name)) continue;
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

/// Why it cannot be a weight; empty: it can.
std::string fault_of(const safetensors_tensor& t) {
  if (!t.type) return fmt::format("has type {}; supported: F32, F16, BF16", t.type_name);
  bool fits = t.dims.size() == 1 || t.dims.size() == 2;
  for (uint64_t dim : t.dims) fits = fits && dim > 0 && dim <= UINT32_MAX;
  return fits ? "" : "is neither a vector nor a matrix";
}

void take(const safetensors_tensor& t, const std::string& file, checkpoint_parts& parts) {
  auto name = name_from_hf(t.name);
  auto fault = name ? fault_of(t) : "is unknown";
  if (fault.empty()) {
    parts.tensors.push_back({.name = *name,
                             .type = *t.type,
                             .rows = t.dims.size() == 2 ? uint32_t(t.dims[0]) : 1,
                             .cols = uint32_t(t.dims.back()),
                             .data = t.data});
    return;
  }
  // The names of another family's tensors are not wrong, only unknown here.
  if (parts.known_family) parts.faults.add(file, t.name, fault, !t.type);
  uint64_t parameters = 1;
  for (uint64_t dim : t.dims) parameters *= dim;
  parts.unread.push_back({.name = name.value_or(""),
                          .type = t.type ? name_of(*t.type) : t.type_name,
                          .parameters = parameters,
                          .bytes = t.data.size()});
}

/// A tied head that was stored nevertheless is the embedding once more, or in its stead.
void drop_tied_head(checkpoint_parts& parts) {
  auto named = [&parts](std::string_view name) {
    return std::find_if(parts.tensors.begin(), parts.tensors.end(),
                        [name](const auto& t) { return t.name == name; });
  };
  auto head = named("head");
  if (!parts.shape.tied || head == parts.tensors.end()) return;
  if (named("embed") == parts.tensors.end())
    head->name = "embed";
  else
    parts.tensors.erase(head);
}

void collect(checkpoint_parts& parts) {
  for (const auto& file : parts.source.shards)
    for (const auto& t : file.tensors())
      if (!is_derived_buffer(t.name)) take(t, file.name(), parts);
  drop_tied_head(parts);
}

void read_defaults(const fs::path& folder, generation_defaults& defaults, problem_list& problems) {
  fs::path path = folder / "generation_config.json";
  if (!is_there(path)) return;
  auto json = read_text(path, limits::json_file_bytes_max);
  if (!json) return note(problems, "{}", json.why().text);
  auto own = read_generation_config(*json, path.string(), problems);
  if (own.eos_ids.empty()) own.eos_ids = defaults.eos_ids;
  if (!own.bos_id) own.bos_id = defaults.bos_id;
  if (!own.pad_id) own.pad_id = defaults.pad_id;
  defaults = std::move(own);
}

}  // namespace

result<checkpoint_parts> read_hf_folder(const fs::path& folder, problem_list& problems) {
  checkpoint_parts parts;
  fs::path path = folder / "config.json";
  if (!is_there(path)) return no_config(folder);
  auto json = read_text(path, limits::json_file_bytes_max);
  if (!json) return json.why();
  auto config = read_config(*json, path.string(), problems);
  parts.shape = std::move(config.shape);
  parts.defaults = std::move(config.defaults);
  parts.known_family = config.known_family;
  read_defaults(folder, parts.defaults, problems);
  auto weights = open_weights(folder);
  if (!weights) {
    note(problems, "{}", weights.why().text);
    return parts;
  }
  parts.source.shards = *std::move(weights);
  parts.has_weights = true;
  collect(parts);
  return parts;
}

}  // namespace lethe
