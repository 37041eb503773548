#include <optional>

#include "runtime/model/byte_reader.hpp"
#include "runtime/model/gguf.hpp"

namespace lethe {

namespace fs = std::filesystem;

namespace {

constexpr uint32_t parts_max = 9999;

/// "x-00001-of-00003.gguf": the names of all its parts; nothing when the name is not so.
std::vector<fs::path> part_paths(const fs::path& first, uint32_t count) {
  std::string name = first.filename().string();
  std::string ending = fmt::format("-00001-of-{:05}.gguf", count);
  if (!name.ends_with(ending)) return {};
  std::string stem = name.substr(0, name.size() - ending.size());
  std::vector<fs::path> paths;
  for (uint32_t i = 1; i <= count; ++i)
    paths.push_back(first.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", stem, i, count));
  return paths;
}

result<void> check_part(const gguf_file& part, uint32_t number, uint32_t count) {
  auto no = part.get_u32("split.no");
  if (!no) return no.why();
  auto of = part.get_u32("split.count");
  if (!of) return of.why();
  if (no->value_or(0) != number || of->value_or(1) != count)
    return fail("{}: says it is part {} of {}; expected part {} of {}", part.name(),
                no->value_or(0) + 1ull, of->value_or(1), number + 1, count);
  return {};
}

}  // namespace

result<gguf_file> gguf_file::open(const fs::path& path) {
  auto mapped = mapped_file::open(path);
  if (!mapped) return mapped.why();
  auto whole = parse(mapped->bytes(), path.string());
  if (!whole) return whole.why();
  whole->parts_.push_back(*std::move(mapped));
  auto count = whole->get_u32("split.count");
  if (!count) return count.why();
  if (count->value_or(1) <= 1) return whole;
  if (auto ok = whole->add_parts(path, **count); !ok) return ok.why();
  return whole;
}

result<void> gguf_file::add_parts(const fs::path& first, uint32_t count) {
  auto paths = count <= parts_max ? part_paths(first, count) : std::vector<fs::path>();
  if (paths.empty())
    return fail("{}: one of {} parts; open the first, NAME-00001-of-{:05}.gguf", name_, count,
                count);
  if (auto ok = check_part(*this, 0, count); !ok) return ok;
  for (uint32_t i = 1; i < count; ++i) {
    auto mapped = mapped_file::open(paths[i]);
    if (!mapped) return mapped.why();
    auto part = parse(mapped->bytes(), paths[i].string());
    if (!part) return part.why();
    if (auto ok = check_part(*part, i, count); !ok) return ok;
    for (const auto& tensor : part->tensors_) {
      if (!tensor_index_.emplace(tensor.name, tensors_.size()).second)
        return fail("{}: tensor \"{}\" is in an earlier part, too", part->name_,
                    printable(tensor.name));
      tensors_.push_back(tensor);
    }
    parts_.push_back(*std::move(mapped));
  }
  auto total = get_u32("split.tensors.count");
  if (!total) return total.why();
  if (*total && **total != tensors_.size())
    return fail("{}: its parts hold {} tensors, not {}", name_, tensors_.size(), **total);
  return {};
}

}  // namespace lethe
