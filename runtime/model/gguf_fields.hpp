#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/model/gguf.hpp"
#include "runtime/model/problems.hpp"

namespace lethe {

/// A GGUF file's metadata with what is wrong noted instead of returned. Keys without a dot before
/// them are the architecture's own ("block_count" is "llama.block_count").
class gguf_fields {
 public:
  gguf_fields(const gguf_file& file, std::string_view architecture, problem_list& problems)
      : file_(file), prefix_(std::string(architecture) + "."), problems_(problems) {}

  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  bool has(std::string_view name) const { return file_.has(key(name)); }
  std::optional<uint32_t> u32(std::string_view name) const {
    return taken(file_.get_u32(key(name)));
  }
  std::optional<float> f32(std::string_view name) const { return taken(file_.get_f32(key(name))); }
  std::optional<bool> boolean(std::string_view name) const {
    return taken(file_.get_bool(key(name)));
  }
  std::optional<std::string_view> text(std::string_view name) const {
    return taken(file_.get_text(key(name)));
  }
  uint32_t required(std::string_view name) const {
    if (!has(name)) note(problems_, "{}: metadata key {} is missing", file_.name(), key(name));
    return u32(name).value_or(0);
  }

  const gguf_file& file() const noexcept { return file_; }
  problem_list& problems() const noexcept { return problems_; }

 private:
  template <class T>
  std::optional<T> taken(result<std::optional<T>> value) const {
    if (value) return *value;
    note(problems_, "{}", value.why().text);
    return std::nullopt;
  }

  const gguf_file& file_;
  std::string prefix_;
  problem_list& problems_;
};

}  // namespace lethe
