#include "runtime/model/checkpoint.hpp"

#include <unordered_set>

#include "runtime/model/checkpoint_source.hpp"
#include "runtime/model/shape_check.hpp"
#include "runtime/model/tensor_names.hpp"

namespace lethe {

namespace fs = std::filesystem;

namespace {

/// Tensors against wrong numbers would only repeat what is wrong with these.
bool can_be_compared(const checkpoint_parts& parts) {
  problem_list numbers;
  if (parts.known_family && parts.has_weights) check_shape(parts.shape, "", numbers);
  return parts.known_family && parts.has_weights && numbers.empty();
}

void compare(checkpoint_parts& parts, const std::string& where, bool gguf) {
  std::unordered_set<std::string_view> unread;
  for (const auto& t : parts.unread) unread.insert(t.name);
  check_tensors(parts.shape, parts.tensors,
                {.where = where, .in_file = gguf ? name_in_gguf : name_in_hf, .unread = unread},
                parts.faults);
}

}  // namespace

checkpoint::checkpoint() : source_(std::make_unique<checkpoint_source>()) {}
checkpoint::checkpoint(checkpoint&&) noexcept = default;
checkpoint& checkpoint::operator=(checkpoint&&) noexcept = default;
checkpoint::~checkpoint() = default;

result<checkpoint> checkpoint::examine(const fs::path& path, problem_list& problems) {
  std::error_code ignored;
  bool folder = fs::is_directory(path, ignored);
  if (!folder && !fs::exists(path, ignored))
    return fail("{}: is not there; a model is a Hugging Face folder or a .gguf file",
                path.string());
  if (!folder && path.extension() == ".safetensors")
    return fail("{}: holds weights only; name its folder, where config.json is", path.string());
  auto parts = folder ? read_hf_folder(path, problems) : read_gguf_model(path, problems);
  if (!parts) return parts.why();
  checkpoint made;
  made.path_ = path;
  made.is_gguf_ = !folder;
  if (can_be_compared(*parts)) compare(*parts, path.string(), !folder);
  parts->faults.report(problems);
  made.shape_ = std::move(parts->shape);
  made.defaults_ = std::move(parts->defaults);
  made.tensors_ = std::move(parts->tensors);
  made.unread_ = std::move(parts->unread);
  *made.source_ = std::move(parts->source);
  for (uint32_t i = 0; i < made.tensors_.size(); ++i) made.index_.emplace(made.tensors_[i].name, i);
  return made;
}

result<checkpoint> checkpoint::open(const fs::path& path) {
  problem_list problems;
  auto made = examine(path, problems);
  if (!made) return made.why();
  if (!problems.empty()) return first_of(problems);
  return made;
}

const raw_tensor* checkpoint::find(std::string_view name) const {
  auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

void checkpoint::release(const raw_tensor& tensor) const noexcept { source_->release(tensor.data); }

}  // namespace lethe
