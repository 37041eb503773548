#include "runtime/model/safetensors.hpp"

#include <simdjson.h>

#include <algorithm>
#include <unordered_set>

#include "runtime/base/limits.hpp"
#include "runtime/model/byte_reader.hpp"
#include "runtime/model/lfs_pointer.hpp"

namespace lethe {

namespace dom = simdjson::dom;

namespace {

constexpr size_t nesting_max = 16;
constexpr size_t dims_max = 8;

struct stored_type {
  std::string_view name;
  uint32_t bytes;
  std::optional<dtype> type;
};

constexpr stored_type stored_types[] = {
    {"F32", 4, dtype::f32},      {"F16", 2, dtype::f16},       {"BF16", 2, dtype::bf16},
    {"F64", 8, std::nullopt},    {"I64", 8, std::nullopt},     {"U64", 8, std::nullopt},
    {"I32", 4, std::nullopt},    {"U32", 4, std::nullopt},     {"I16", 2, std::nullopt},
    {"U16", 2, std::nullopt},    {"I8", 1, std::nullopt},      {"U8", 1, std::nullopt},
    {"BOOL", 1, std::nullopt},   {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"F8_E8M0", 1, std::nullopt}};

/// Reads the header of one file.
class header_reader {
 public:
  header_reader(const std::string& name, bytes_view data) : name_(name), data_(data) {}

  result<safetensors_tensor> tensor(std::string_view name, dom::element entry);

 private:
  error wrong(std::string_view tensor, const char* what) const {
    return fail("{}: tensor \"{}\": {}", name_, printable(tensor), what);
  }
  result<uint64_t> dims(safetensors_tensor& into, dom::object entry);
  result<bytes_view> offsets(const safetensors_tensor& of, dom::object entry);

  const std::string& name_;
  bytes_view data_;
};

/// The number of elements, below 2^60.
result<uint64_t> header_reader::dims(safetensors_tensor& into, dom::object entry) {
  dom::array shape;
  if (entry.at_key("shape").get(shape)) return wrong(into.name, "shape is missing");
  uint64_t elements = 1;
  for (dom::element e : shape) {
    uint64_t dim = 0;
    if (e.get(dim)) return wrong(into.name, "shape must hold integers of 0 or more");
    if (into.dims.size() == dims_max) return wrong(into.name, "has more than 8 dimensions");
    if (dim && elements > (uint64_t{1} << 60) / dim) return wrong(into.name, "is too large");
    elements *= dim;
    into.dims.push_back(dim);
  }
  return elements;
}

result<bytes_view> header_reader::offsets(const safetensors_tensor& of, dom::object entry) {
  dom::array pair;
  uint64_t at[2] = {0, 0};
  if (entry.at_key("data_offsets").get(pair) || pair.size() != 2)
    return wrong(of.name, "data_offsets must be two integers");
  for (size_t i = 0; i < 2; ++i)
    if (pair.at(i).get(at[i])) return wrong(of.name, "data_offsets must be two integers");
  if (at[0] > at[1] || at[1] > data_.size())
    return fail(
        "{}: tensor \"{}\" lies at {} to {}, but the file's data has {} bytes; download it "
        "again",
        name_, printable(of.name), at[0], at[1], data_.size());
  return data_.subspan(at[0], at[1] - at[0]);
}

result<safetensors_tensor> header_reader::tensor(std::string_view name, dom::element entry) {
  safetensors_tensor made{.name = std::string(name)};
  dom::object object;
  std::string_view type;
  if (entry.get(object)) return wrong(name, "is no object");
  if (object.at_key("dtype").get(type)) return wrong(name, "dtype is missing");
  made.type_name = printable(type);
  auto elements = dims(made, object);
  if (!elements) return elements.why();
  auto data = offsets(made, object);
  if (!data) return data.why();
  made.data = *data;
  auto known = std::find_if(std::begin(stored_types), std::end(stored_types),
                            [&](const auto& t) { return t.name == type; });
  if (known == std::end(stored_types)) return made;
  made.type = known->type;
  if (*elements * known->bytes != made.data.size())
    return fail("{}: tensor \"{}\" has {} bytes; its shape and type say {}", name_, printable(name),
                made.data.size(), *elements * known->bytes);
  return made;
}

/// Sorts by place; each must begin where the one before ends.
result<void> check_places(const std::string& name, bytes_view data,
                          std::vector<safetensors_tensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  const std::byte* end = data.data();
  for (const auto& t : tensors) {
    if (t.data.data() != end)
      return fail("{}: tensor \"{}\" {} before it; the file is damaged", name, printable(t.name),
                  t.data.data() < end ? "overlaps the one" : "leaves a hole");
    end += t.data.size();
  }
  if (end != data.data() + data.size())
    return fail("{}: {} bytes after the last tensor; the file is damaged", name,
                data.data() + data.size() - end);
  return {};
}

result<std::string_view> header_of(bytes_view bytes, const std::string& name) {
  if (is_lfs_pointer(bytes)) return fail("{}: {}", name, lfs_advice);
  byte_reader in(bytes);
  auto size = in.number<uint64_t>();
  if (!in.ok()) return fail("{}: too short for a safetensors file; download it again", name);
  if (size > limits::json_file_bytes_max)
    return fail("{}: claims a header of {} bytes; at most {} are read", name, size,
                limits::json_file_bytes_max);
  bytes_view header = in.bytes(size);
  if (!in.ok())
    return fail("{}: the file ends inside its header of {} bytes; download it again", name, size);
  return as_text(header);
}

}  // namespace

result<safetensors_file> safetensors_file::parse(bytes_view bytes, std::string name) {
  safetensors_file file;
  file.name_ = std::move(name);
  auto header = header_of(bytes, file.name_);
  if (!header) return header.why();
  dom::parser parser;
  dom::object object;
  auto failed = parser.allocate(header->size(), nesting_max);
  if (!failed) failed = parser.parse(header->data(), header->size(), true).get(object);
  if (failed)
    return fail("{}: its header is not a JSON object: {}", file.name_,
                simdjson::error_message(failed));
  bytes_view data = bytes.subspan(8 + header->size());
  header_reader reader(file.name_, data);
  std::unordered_set<std::string_view> seen;
  for (auto member : object) {
    if (!seen.insert(member.key).second)
      return fail("{}: tensor \"{}\" comes twice", file.name_, printable(member.key));
    if (member.key == "__metadata__") continue;
    auto tensor = reader.tensor(member.key, member.value);
    if (!tensor) return tensor.why();
    file.tensors_.push_back(*std::move(tensor));
  }
  if (auto ok = check_places(file.name_, data, file.tensors_); !ok) return ok.why();
  return file;
}

result<safetensors_file> safetensors_file::open(const std::filesystem::path& path) {
  auto mapped = mapped_file::open(path);
  if (!mapped) return mapped.why();
  auto file = parse(mapped->bytes(), path.string());
  if (!file) return file.why();
  file->file_.emplace(*std::move(mapped));
  return file;
}

void safetensors_file::release(bytes_view part) const noexcept {
  if (!file_) return;
  const std::byte* begin = file_->bytes().data();
  if (part.data() >= begin && part.data() < begin + file_->bytes().size()) file_->release(part);
}

}  // namespace lethe
