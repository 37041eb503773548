#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "runtime/base/bytes.hpp"
#include "tests/places.hpp"

/// Files that tests of runtime/model make, and where the published ones lie.
namespace lethe::test {

namespace fs = std::filesystem;

/// A folder that goes with the object.
class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (fs::temp_directory_path() / "lethe-model-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  temporary_folder(const temporary_folder&) = delete;
  ~temporary_folder() { fs::remove_all(path_); }

  fs::path operator/(std::string_view name) const { return path_ / name; }
  const fs::path& path() const { return path_; }
  fs::path write(std::string_view name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  fs::path path_;
};

/// The folder of published vectors; empty when it is not there, which only CI must not accept.
inline fs::path vectors() {
  const char* given = std::getenv("LETHE_VECTORS");
  fs::path path = given ? given : places::vectors;
  if (fs::exists(path)) return path;
  const char* ci = std::getenv("CI");
  if (ci && std::string_view(ci) == "true") ADD_FAILURE() << path << " is not there";
  return {};
}

#define LETHE_NEEDS_VECTORS() \
  if (lethe::test::vectors().empty()) GTEST_SKIP() << "no vectors: set LETHE_VECTORS"

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A GGUF file piece by piece, also a wrong one.
struct gguf_text {
  std::string keys, tensors, data;
  uint64_t key_count = 0, tensor_count = 0;
  uint32_t version = 3;

  static std::string text(std::string_view t) {
    std::string out;
    append(out, uint64_t{t.size()});
    return out.append(t);
  }
  template <class T>
  gguf_text& key(std::string_view name, uint32_t kind, T value) {
    keys += text(name);
    append(keys, kind);
    append(keys, value);
    ++key_count;
    return *this;
  }
  gguf_text& u32(std::string_view name, uint32_t value) { return key(name, 4, value); }
  gguf_text& f32(std::string_view name, float value) { return key(name, 6, value); }
  gguf_text& flag(std::string_view name, bool value) { return key(name, 7, value); }
  gguf_text& text(std::string_view name, std::string_view value) {
    key(name, 8, uint64_t{value.size()});
    keys += value;
    return *this;
  }
  /// `elements` as they shall lie in the file.
  gguf_text& array(std::string_view name, uint32_t element, uint64_t count,
                   std::string_view elements) {
    key(name, 9, element);
    append(keys, count);
    keys += elements;
    return *this;
  }
  gguf_text& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                    uint64_t offset) {
    tensors += text(name);
    append(tensors, uint32_t(dims.size()));
    for (uint64_t d : dims) append(tensors, d);
    append(tensors, type);
    append(tensors, offset);
    ++tensor_count;
    return *this;
  }
  std::string bytes(uint64_t alignment = 32) const {
    std::string out = "GGUF";
    append(out, version);
    append(out, tensor_count);
    append(out, key_count);
    out += keys + tensors;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data;
  }
};

/// A safetensors file of this header.
inline std::string safetensors(std::string_view header, std::string_view data) {
  std::string out;
  append(out, uint64_t{header.size()});
  return out.append(header).append(data);
}

/// Expects a failure whose text holds `part`.
#define EXPECT_WHY(value, part)                                                    \
  do {                                                                             \
    const auto& got_ = (value);                                                    \
    if (got_)                                                                      \
      ADD_FAILURE() << "accepted, expected: " << (part);                           \
    else                                                                           \
      EXPECT_NE(got_.why().text.find(part), std::string::npos) << got_.why().text; \
  } while (false)

}  // namespace lethe::test
