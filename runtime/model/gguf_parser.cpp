#include "runtime/model/gguf_parser.hpp"

#include <algorithm>

#include "runtime/base/limits.hpp"
#include "runtime/model/lfs_pointer.hpp"

namespace lethe {

namespace {

constexpr uint64_t keys_max = 1 << 16;
constexpr uint64_t key_bytes_max = 65535;  // the format's own bound
constexpr uint64_t tensor_name_bytes_max = 1024;
constexpr uint32_t nesting_max = 4;
constexpr uint64_t alignment_max = 1 << 20;

// The least that a key or a tensor takes in a file: bounds what a count may claim.
constexpr uint64_t key_bytes_min = 8 + 1 + 4 + 1;
constexpr uint64_t tensor_bytes_min = 8 + 1 + 4 + 8 + 4 + 8;

uint64_t round_up(uint64_t at, uint64_t alignment) {
  return (at + alignment - 1) / alignment * alignment;
}

}  // namespace

error gguf_parser::truncated(std::string_view what) const {
  return fail("{}: the file ends inside {}, at {} of {} bytes; download it again", into_.name_,
              what, in_.position(), all_.size());
}

std::string_view gguf_parser::read_text() {
  auto size = in_.number<uint64_t>();
  return as_text(in_.bytes(size));
}

result<void> gguf_parser::read() {
  if (auto ok = read_counts(); !ok) return ok;
  if (auto ok = read_keys(); !ok) return ok;
  if (auto ok = read_alignment(); !ok) return ok;
  into_.tensors_.reserve(tensor_count_);
  for (uint64_t i = 0; i < tensor_count_; ++i)
    if (auto ok = read_tensor(); !ok) return ok;
  return place_tensors();
}

result<void> gguf_parser::read_counts() {
  const auto& name = into_.name_;
  if (is_lfs_pointer(all_)) return fail("{}: {}", name, lfs_advice);
  if (as_text(in_.bytes(4)) != "GGUF")
    return fail("{}: not a GGUF file (it does not begin with \"GGUF\")", name);
  auto version = in_.number<uint32_t>();
  if (version != 0 && (version & 0xffff) == 0)
    return fail("{}: a big-endian GGUF file; supported: little endian", name);
  if (in_.ok() && version != 2 && version != 3)
    return fail("{}: GGUF version {} is not supported; supported: 2, 3", name, version);
  tensor_count_ = in_.number<uint64_t>();
  key_count_ = in_.number<uint64_t>();
  if (!in_.ok()) return truncated("the header");
  if (key_count_ > keys_max || key_count_ > in_.remaining() / key_bytes_min)
    return fail("{}: claims {} metadata keys, more than the file can hold", name, key_count_);
  if (tensor_count_ > limits::tensors_max || tensor_count_ > in_.remaining() / tensor_bytes_min)
    return fail("{}: claims {} tensors, more than the file can hold", name, tensor_count_);
  return {};
}

result<void> gguf_parser::read_keys() {
  for (uint64_t i = 0; i < key_count_; ++i) {
    std::string_view key = read_text();
    if (!in_.ok()) return truncated("a metadata key");
    if (key.empty() || key.size() > key_bytes_max)
      return fail("{}: metadata key {} has {} bytes; allowed: 1 to {}", into_.name_, i, key.size(),
                  key_bytes_max);
    if (into_.values_.contains(key))
      return fail("{}: metadata key \"{}\" comes twice", into_.name_, printable(key));
    if (auto ok = read_value(key); !ok) return ok;
    into_.keys_.push_back(key);
  }
  return {};
}

result<void> gguf_parser::read_value(std::string_view key) {
  auto kind = in_.number<uint32_t>();
  if (!in_.ok()) return truncated("a metadata value");
  if (kind >= gguf_kind_count)
    return fail("{}: metadata key \"{}\" has the unknown type {}", into_.name_, printable(key),
                kind);
  gguf_value value{.kind = gguf_kind(kind)};
  if (value.kind == gguf_kind::array) {
    if (auto ok = skip_array(key, value, 0); !ok) return ok;
  } else {
    value.bytes =
        value.kind == gguf_kind::text ? as_bytes(read_text()) : in_.bytes(fixed_bytes(value.kind));
  }
  if (!in_.ok()) return truncated("metadata key \"" + printable(key) + "\"");
  into_.values_.emplace(key, value);
  return {};
}

/// Arrays of arrays are allowed by the format though no key that we read has one.
result<void> gguf_parser::skip_array(std::string_view key, gguf_value& value, uint32_t depth) {
  if (depth == nesting_max)
    return fail("{}: metadata key \"{}\" nests arrays deeper than {}", into_.name_, printable(key),
                nesting_max);
  auto element = in_.number<uint32_t>();
  value.count = in_.number<uint64_t>();
  if (!in_.ok()) return truncated("an array");
  if (element >= gguf_kind_count)
    return fail("{}: metadata key \"{}\" has elements of the unknown type {}", into_.name_,
                printable(key), element);
  value.element = gguf_kind(element);
  // The least an element takes: its own size, a text's length, or a nested array's type and count.
  uint64_t least = fixed_bytes(value.element) ? fixed_bytes(value.element) : 8;
  if (value.count > in_.remaining() / least)
    return fail("{}: metadata key \"{}\" claims {} elements, more than the file can hold",
                into_.name_, printable(key), value.count);
  uint64_t begin = in_.position();
  if (auto ok = skip_elements(key, value, depth); !ok) return ok;
  if (!in_.ok()) return truncated("metadata key \"" + printable(key) + "\"");
  value.bytes = all_.subspan(begin, in_.position() - begin);
  return {};
}

result<void> gguf_parser::skip_elements(std::string_view key, const gguf_value& array,
                                        uint32_t depth) {
  if (uint32_t size = fixed_bytes(array.element)) {
    in_.bytes(array.count * size);
    return {};
  }
  for (uint64_t i = 0; i < array.count && in_.ok(); ++i) {
    if (array.element == gguf_kind::text) {
      read_text();
      continue;
    }
    gguf_value nested{.kind = gguf_kind::array};
    if (auto ok = skip_array(key, nested, depth + 1); !ok) return ok;
  }
  return {};
}

result<void> gguf_parser::read_alignment() {
  auto given = into_.get_u32("general.alignment");
  if (!given) return given.why();
  if (!*given) return {};
  alignment_ = **given;
  if (alignment_ == 0 || alignment_ > alignment_max || (alignment_ & (alignment_ - 1)))
    return fail("{}: general.alignment is {}; it must be a power of two of at most {}", into_.name_,
                alignment_, alignment_max);
  return {};
}

result<void> gguf_parser::read_tensor() {
  gguf_tensor tensor{.name = read_text()};
  if (!in_.ok()) return truncated("a tensor's name");
  if (tensor.name.empty() || tensor.name.size() > tensor_name_bytes_max)
    return fail("{}: tensor {} has a name of {} bytes; allowed: 1 to {}", into_.name_,
                into_.tensors_.size(), tensor.name.size(), tensor_name_bytes_max);
  if (auto ok = read_dims(tensor); !ok) return ok;
  tensor.type_number = in_.number<uint32_t>();
  tensor.type = dtype_of_gguf(tensor.type_number);
  offsets_.push_back(in_.number<uint64_t>());
  if (!in_.ok()) return truncated("tensor \"" + printable(tensor.name) + "\"");
  if (!into_.tensor_index_.emplace(tensor.name, into_.tensors_.size()).second)
    return fail("{}: tensor \"{}\" comes twice", into_.name_, printable(tensor.name));
  into_.tensors_.push_back(tensor);
  return {};
}

result<void> gguf_parser::read_dims(gguf_tensor& tensor) {
  tensor.dims_count = in_.number<uint32_t>();
  if (!in_.ok()) return truncated("tensor \"" + printable(tensor.name) + "\"");
  if (tensor.dims_count == 0 || tensor.dims_count > limits::tensor_dims_max)
    return fail("{}: tensor \"{}\" has {} dimensions; allowed: 1 to {}", into_.name_,
                printable(tensor.name), tensor.dims_count, limits::tensor_dims_max);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < tensor.dims_count; ++i) {
    tensor.dims[i] = in_.number<uint64_t>();
    // Elements stay below 2^60, so that their bytes cannot overflow.
    if (in_.ok() && (tensor.dims[i] == 0 || tensor.dims[i] > (uint64_t{1} << 60) / elements))
      return fail("{}: tensor \"{}\": dimension {} is {}", into_.name_, printable(tensor.name), i,
                  tensor.dims[i]);
    elements *= std::max<uint64_t>(tensor.dims[i], 1);
  }
  return {};
}

result<void> gguf_parser::place_tensors() {
  uint64_t begin = std::min<uint64_t>(round_up(in_.position(), alignment_), all_.size());
  bytes_view data = all_.subspan(begin);
  for (size_t i = 0; i < offsets_.size(); ++i)
    if (auto ok = place(into_.tensors_[i], data, offsets_[i]); !ok) return ok;
  return check_overlaps();
}

result<void> gguf_parser::place(gguf_tensor& tensor, bytes_view data, uint64_t offset) {
  auto name = printable(tensor.name);
  if (offset % alignment_)
    return fail("{}: tensor \"{}\" begins at {}, not a multiple of {}", into_.name_, name, offset,
                alignment_);
  if (!tensor.type) return {};
  uint32_t block = block_elements(*tensor.type);
  if (tensor.dims[0] % block)
    return fail("{}: tensor \"{}\": rows of {} elements are not whole {} blocks of {}", into_.name_,
                name, tensor.dims[0], name_of(*tensor.type), block);
  uint64_t blocks = tensor.dims[0] / block * tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
  // Below 2^60 elements: at most 2^52 blocks of 256, or 2^60 of one element and 4 bytes.
  uint64_t size = blocks * block_bytes(*tensor.type);
  if (offset > data.size() || size > data.size() - offset)
    return fail(
        "{}: tensor \"{}\" needs {} bytes at {}, but the file's data has {}; download it again",
        into_.name_, name, size, offset, data.size());
  tensor.data = data.subspan(offset, size);
  return {};
}

result<void> gguf_parser::check_overlaps() const {
  std::vector<const gguf_tensor*> order;
  for (const auto& tensor : into_.tensors_)
    if (tensor.type) order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->data.data() < b->data.data(); });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->data.data() + order[i - 1]->data.size() > order[i]->data.data())
      return fail("{}: tensors \"{}\" and \"{}\" overlap", into_.name_,
                  printable(order[i - 1]->name), printable(order[i]->name));
  return {};
}

}  // namespace lethe
