#include "runtime/client/view_memory.hpp"

#include "runtime/base/mapped_file.hpp"
#include "runtime/log/be_fields.hpp"

namespace lethe {

namespace {

constexpr uint8_t version = 1;
constexpr size_t file_bytes_max = size_t{1} << 20;

}  // namespace

std::vector<std::byte> view_memory::to_bytes() const {
  std::vector<std::byte> out;
  append_be(out, version);
  append_be(out, uint8_t(before.has_value()));
  append_be(out, before ? before->epoch : 0u);
  append_be(out, before ? before->capacity : uint64_t{0});
  if (log) append(out, log->to_bytes());
  return out;
}

result<view_memory> view_memory::from_bytes(bytes_view bytes) {
  field_reader in(bytes);
  const auto ver = in.number<uint8_t>(), has = in.number<uint8_t>();
  const roster_before before{in.number<uint32_t>(), in.number<uint64_t>()};
  const bool none = has == 0 && before.epoch == 0 && before.capacity == 0;
  if (!in.good() || ver != version || (has != 1 && !none))
    return fail("not what a client remembers of a cluster");
  view_memory made;
  if (has == 1) made.before = before;
  if (in.rest().empty()) return made;
  auto log = log_memory::from_bytes(in.rest());
  if (!log) return log.why();
  made.log = *std::move(log);
  return made;
}

result<view_memory> view_memory::read(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return view_memory{};
  auto text = read_text(file, file_bytes_max);
  if (!text) return text.why();
  auto made = from_bytes(as_bytes(*text));
  if (made) return made;
  return fail(
      "{}: {}; without it a fork of the log would not be noticed: restore it, or move it away to "
      "begin anew",
      file.string(), made.why().text);
}

}  // namespace lethe
