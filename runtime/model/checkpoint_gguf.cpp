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

/// Why it cannot be a weight; empty: it can.
std::string fault_of(const gguf_tensor& t) {
  if (!t.type)
    return fmt::format("has type {}; supported: {}", gguf_type_name(t.type_number), dtype_names());
  if (t.dims[2] != 1 || t.dims[3] != 1 || t.dims[0] > UINT32_MAX || t.dims[1] > UINT32_MAX)
    return "is neither a vector nor a matrix";
  return {};
}

void take(const gguf_tensor& t, const std::string& file, bool interleaved,
          checkpoint_parts& parts) {
  auto name = name_from_gguf(t.name);
  auto fault = name ? fault_of(t) : "is unknown";
  if (fault.empty()) {
    parts.tensors.push_back({.name = *name,
                             .type = *t.type,
                             .rows = uint32_t(t.dims[1]),
                             .cols = uint32_t(t.dims[0]),
                             .data = t.data,
                             .interleaved_rope = interleaved && turns(*name)});
    return;
  }
  // The names of another family's tensors are not wrong, only unknown here.
  if (parts.known_family) parts.faults.add(file, t.name, fault, !t.type);
  parts.unread.push_back({.name = name.value_or(""),
                          .type = t.type ? name_of(*t.type) : gguf_type_name(t.type_number),
                          .parameters = t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3],
                          .bytes = t.data.size()});
}

}  // namespace

result<checkpoint_parts> read_gguf_model(const std::filesystem::path& path,
                                         problem_list& problems) {
  auto file = gguf_file::open(path);
  if (!file) return file.why();
  checkpoint_parts parts;
  auto numbers = read_gguf_shape(*file, problems);
  parts.shape = std::move(numbers.shape);
  parts.known_family = numbers.known_family;
  parts.defaults = read_gguf_defaults(*file, problems);
  bool interleaved = has_interleaved_rope(parts.shape.family);
  for (const auto& t : file->tensors())
    if (!is_derived_buffer(t.name) && t.name != "rope_freqs.weight")
      take(t, file->name(), interleaved, parts);
  parts.has_weights = !file->tensors().empty();
  if (!parts.has_weights)
    note(problems, "{}: holds no tensors, perhaps a vocabulary only; take the model's file",
         file->name());
  parts.source.gguf.emplace(*std::move(file));
  return parts;
}

}  // namespace lethe
