#include "runtime/model/gguf_write.hpp"

#include "runtime/base/check.hpp"

namespace lethe {

namespace {

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& to, std::string_view text) {
  put(to, uint64_t{text.size()});
  to += text;
}

uint64_t padded(uint64_t size) {
  return (size + gguf_alignment - 1) / gguf_alignment * gguf_alignment;
}

}  // namespace

void gguf_header::begin(std::string_view key, gguf_kind kind) {
  put_text(keys_, key);
  put(keys_, uint32_t(kind));
  ++key_count_;
}

void gguf_header::begin_array(std::string_view key, gguf_kind element, uint64_t count) {
  begin(key, gguf_kind::array);
  put(keys_, uint32_t(element));
  put(keys_, count);
}

template <class T>
void gguf_header::add_number(std::string_view key, gguf_kind kind, T value) {
  begin(key, kind);
  put(keys_, value);
}

void gguf_header::add(std::string_view key, uint32_t value) {
  add_number(key, gguf_kind::u32, value);
}

void gguf_header::add(std::string_view key, float value) { add_number(key, gguf_kind::f32, value); }

void gguf_header::add(std::string_view key, bool value) {
  add_number(key, gguf_kind::boolean, uint8_t(value));
}

void gguf_header::add(std::string_view key, std::string_view value) {
  begin(key, gguf_kind::text);
  put_text(keys_, value);
}

void gguf_header::add(std::string_view key, std::span<const std::string> values) {
  begin_array(key, gguf_kind::text, values.size());
  for (const auto& value : values) put_text(keys_, value);
}

void gguf_header::add(std::string_view key, std::span<const float> values) {
  begin_array(key, gguf_kind::f32, values.size());
  for (float value : values) put(keys_, value);
}

void gguf_header::add(std::string_view key, std::span<const int32_t> values) {
  begin_array(key, gguf_kind::i32, values.size());
  for (int32_t value : values) put(keys_, value);
}

void gguf_header::add(std::string_view key, const std::vector<bool>& values) {
  begin_array(key, gguf_kind::boolean, values.size());
  for (bool value : values) put(keys_, uint8_t(value));
}

void gguf_header::add_tensor(std::string_view name, dtype type, uint32_t rows, uint32_t cols) {
  check(cols % block_elements(type) == 0);
  put_text(tensors_, name);
  put(tensors_, uint32_t(rows == 1 ? 1 : 2));
  put(tensors_, uint64_t{cols});
  if (rows != 1) put(tensors_, uint64_t{rows});
  put(tensors_, gguf_type_number(type));
  put(tensors_, data_bytes_);
  ++tensor_count_;
  data_bytes_ += padded(uint64_t{rows} * (cols / block_elements(type)) * block_bytes(type));
}

std::string gguf_header::bytes() const {
  std::string all = "GGUF";
  put(all, uint32_t{3});
  put(all, tensor_count_);
  put(all, key_count_);
  all += keys_;
  all += tensors_;
  all.resize(padded(all.size()));
  return all;
}

}  // namespace lethe
