#include "runtime/model/byte_reader.hpp"
#include "runtime/model/checkpoint_source.hpp"
#include "runtime/model/gguf_shape.hpp"
#include "runtime/model/tensor_names.hpp"

namespace lethe {

namespace {

bool turns(std::string_view name) {
  return name.ends_with(".q") || name.ends_with(".k") || name.ends_with(".q_bias") ||
         name.ends_with(".k_bias");
}

std::optional<raw_tensor> raw_of(const gguf_tensor& t, const std::string& file,
                                 problem_list& problems) {
  auto name = name_from_gguf(t.name);
  if (!name) {
    note(problems, "{}: tensor \"{}\" is unknown", file, printable(t.name));
    return std::nullopt;
  }
  if (!t.type) {
    note(problems, "{}: tensor \"{}\" has type {}; supported: {}", file, printable(t.name),
         gguf_type_name(t.type_number), dtype_names());
    return std::nullopt;
  }
  if (t.dims[2] != 1 || t.dims[3] != 1 || t.dims[0] > UINT32_MAX || t.dims[1] > UINT32_MAX) {
    note(problems, "{}: tensor \"{}\" is neither a vector nor a matrix", file, printable(t.name));
    return std::nullopt;
  }
  return raw_tensor{.name = *std::move(name),
                    .type = *t.type,
                    .rows = uint32_t(t.dims[1]),
                    .cols = uint32_t(t.dims[0]),
                    .data = t.data};
}

}  // namespace

result<checkpoint_parts> read_gguf_model(const std::filesystem::path& path,
                                         problem_list& problems) {
  auto file = gguf_file::open(path);
  if (!file) return file.why();
  checkpoint_parts parts;
  size_t before = problems.size();
  parts.shape = read_gguf_shape(*file, problems);
  parts.defaults = read_gguf_defaults(*file, problems);
  bool known_family = !parts.shape.family.empty() || problems.size() == before;
  bool interleaved = has_interleaved_rope(parts.shape.family);
  for (const auto& t : file->tensors()) {
    if (!known_family || is_derived_buffer(t.name) || t.name == "rope_freqs.weight") continue;
    auto raw = raw_of(t, file->name(), problems);
    if (!raw) continue;
    raw->interleaved_rope = interleaved && turns(raw->name);
    parts.tensors.push_back(*std::move(raw));
  }
  parts.source.gguf.emplace(*std::move(file));
  return parts;
}

}  // namespace lethe
