#include "runtime/model/gguf.hpp"

#include <limits>

#include "runtime/model/byte_reader.hpp"
#include "runtime/model/gguf_parser.hpp"

namespace lethe {

namespace {

error wrong_kind(const gguf_file& file, std::string_view key, const gguf_value& value,
                 const char* wanted) {
  return fail("{}: metadata key \"{}\" is {}{}, not {}", file.name(), printable(key),
              value.kind == gguf_kind::array ? "an array of " : "",
              name_of(value.kind == gguf_kind::array ? value.element : value.kind), wanted);
}

/// Any integer as i64; none for other kinds, and for a u64 that does not fit.
std::optional<int64_t> integer_at(gguf_kind kind, const std::byte* at) {
  switch (kind) {
    case gguf_kind::u8:
      return load_le<uint8_t>(at);
    case gguf_kind::i8:
      return load_le<int8_t>(at);
    case gguf_kind::u16:
      return load_le<uint16_t>(at);
    case gguf_kind::i16:
      return load_le<int16_t>(at);
    case gguf_kind::u32:
      return load_le<uint32_t>(at);
    case gguf_kind::i32:
      return load_le<int32_t>(at);
    case gguf_kind::i64:
      return load_le<int64_t>(at);
    case gguf_kind::u64: {
      auto value = load_le<uint64_t>(at);
      if (value > uint64_t(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return int64_t(value);
    }
    default:
      return std::nullopt;
  }
}

bool is_integer(gguf_kind kind) {
  return kind != gguf_kind::f32 && kind != gguf_kind::f64 && kind != gguf_kind::boolean &&
         kind != gguf_kind::text && kind != gguf_kind::array;
}

/// The array under `key` whose elements `fits` accepts; null where there is no such key or it is
/// empty (an empty array's element type says nothing).
result<const gguf_value*> array_of(const gguf_file& file, std::string_view key, const char* wanted,
                                   bool (*fits)(gguf_kind)) {
  const gguf_value* value = file.find(key);
  if (!value) return nullptr;
  if (value->kind != gguf_kind::array) return wrong_kind(file, key, *value, wanted);
  if (value->count == 0) return nullptr;
  if (!fits(value->element)) return wrong_kind(file, key, *value, wanted);
  return value;
}

}  // namespace

const gguf_value* gguf_file::find(std::string_view key) const {
  auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

const gguf_tensor* gguf_file::find_tensor(std::string_view tensor_name) const {
  auto at = tensor_index_.find(tensor_name);
  return at == tensor_index_.end() ? nullptr : &tensors_[at->second];
}

result<std::optional<uint32_t>> gguf_file::get_u32(std::string_view key) const {
  const gguf_value* value = find(key);
  if (!value) return std::optional<uint32_t>();
  if (!is_integer(value->kind)) return wrong_kind(*this, key, *value, "an integer");
  auto number = integer_at(value->kind, value->bytes.data());
  if (!number || *number < 0 || *number > std::numeric_limits<uint32_t>::max())
    return fail("{}: metadata key \"{}\" does not fit into 32 bits", name_, printable(key));
  return std::optional<uint32_t>(uint32_t(*number));
}

result<std::optional<float>> gguf_file::get_f32(std::string_view key) const {
  const gguf_value* value = find(key);
  if (!value) return std::optional<float>();
  if (value->kind == gguf_kind::f32) return std::optional(load_le<float>(value->bytes.data()));
  if (value->kind == gguf_kind::f64)
    return std::optional(float(load_le<double>(value->bytes.data())));
  return wrong_kind(*this, key, *value, "a number with a fraction");
}

result<std::optional<bool>> gguf_file::get_bool(std::string_view key) const {
  const gguf_value* value = find(key);
  if (!value) return std::optional<bool>();
  if (value->kind != gguf_kind::boolean) return wrong_kind(*this, key, *value, "a bool");
  return std::optional<bool>(load_le<uint8_t>(value->bytes.data()) != 0);
}

result<std::optional<std::string_view>> gguf_file::get_text(std::string_view key) const {
  const gguf_value* value = find(key);
  if (!value) return std::optional<std::string_view>();
  if (value->kind != gguf_kind::text) return wrong_kind(*this, key, *value, "a text");
  return std::optional(as_text(value->bytes));
}

result<std::vector<std::string_view>> gguf_file::get_texts(std::string_view key) const {
  auto array = array_of(*this, key, "an array of texts",
                        [](gguf_kind kind) { return kind == gguf_kind::text; });
  if (!array) return array.why();
  std::vector<std::string_view> texts;
  if (!*array) return texts;
  texts.reserve((*array)->count);
  byte_reader in((*array)->bytes);
  for (uint64_t i = 0; i < (*array)->count; ++i) {
    auto size = in.number<uint64_t>();
    texts.push_back(as_text(in.bytes(size)));
  }
  return texts;
}

result<std::vector<float>> gguf_file::get_floats(std::string_view key) const {
  auto array = array_of(*this, key, "an array of f32",
                        [](gguf_kind kind) { return kind == gguf_kind::f32; });
  if (!array) return array.why();
  std::vector<float> all(*array ? (*array)->count : 0);
  if (*array) std::memcpy(all.data(), (*array)->bytes.data(), (*array)->bytes.size());
  return all;
}

result<std::vector<int32_t>> gguf_file::get_ints(std::string_view key) const {
  auto array = array_of(*this, key, "an array of integers", is_integer);
  if (!array) return array.why();
  std::vector<int32_t> all(*array ? (*array)->count : 0);
  for (uint64_t i = 0; i < all.size(); ++i) {
    auto kind = (*array)->element;
    auto number = integer_at(kind, (*array)->bytes.data() + i * fixed_bytes(kind));
    if (!number || int32_t(*number) != *number)
      return fail("{}: element {} of metadata key \"{}\" does not fit into 32 bits", name_, i,
                  printable(key));
    all[i] = int32_t(*number);
  }
  return all;
}

result<std::vector<uint8_t>> gguf_file::get_octets(std::string_view key) const {
  auto array = array_of(*this, key, "an array of bytes", [](gguf_kind kind) {
    return kind == gguf_kind::u8 || kind == gguf_kind::i8;
  });
  if (!array) return array.why();
  std::vector<uint8_t> all(*array ? (*array)->count : 0);
  if (*array) std::memcpy(all.data(), (*array)->bytes.data(), all.size());
  return all;
}

void gguf_file::release(bytes_view part) const noexcept {
  for (const auto& file : parts_) {
    const std::byte* begin = file.bytes().data();
    if (part.data() >= begin && part.data() < begin + file.bytes().size()) file.release(part);
  }
}

result<gguf_file> gguf_file::parse(bytes_view bytes, std::string name) {
  gguf_file file;
  file.name_ = std::move(name);
  if (auto ok = gguf_parser(file, bytes).read(); !ok) return ok.why();
  return file;
}

}  // namespace lethe
