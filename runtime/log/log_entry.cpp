#include "runtime/log/log_entry.hpp"

#include "runtime/log/be_fields.hpp"
#include "runtime/log/log_limits.hpp"

namespace lethe {

namespace {

constexpr uint8_t version = 1;
constexpr size_t head_bytes = 1 + 1 + 4;

}  // namespace

std::string_view name_of(log_kind kind) {
  constexpr std::string_view names[] = {"release", "roster", "ohttp-keys", "issuer-keys", "policy"};
  return names[size_t(kind) - 1];
}

std::vector<std::byte> log_entry::to_bytes() const {
  check(head_bytes + payload.size() <= limits::log_entry_bytes_max);
  std::vector<std::byte> out{std::byte(version), std::byte(kind)};
  append_be(out, epoch);
  append(out, payload);
  return out;
}

result<log_entry> log_entry::from_bytes(bytes_view bytes) {
  if (bytes.size() < head_bytes || bytes.size() > limits::log_entry_bytes_max)
    return fail("log entry: {} bytes; it has {} to {}", bytes.size(), head_bytes,
                limits::log_entry_bytes_max);
  field_reader in(bytes);
  const auto ver = in.number<uint8_t>(), kind = in.number<uint8_t>();
  if (ver != version) return fail("log entry: version {}; this release reads {}", ver, version);
  if (kind == 0 || kind > log_kinds.size()) return fail("log entry: kind {} is unknown", kind);
  log_entry e{.kind = log_kind(kind), .epoch = in.number<uint32_t>()};
  append(e.payload, in.rest());
  return e;
}

epoch_step epoch_index::step(log_kind kind, uint32_t epoch) const {
  const auto last = last_[slot(kind)];
  if (!last || uint64_t{*last} + 1 == epoch) return epoch_step::next;
  return epoch <= *last ? epoch_step::repeated : epoch_step::gap;
}

result<std::vector<bytes_view>> split_bundle(bytes_view bundle, size_t count) {
  field_reader in(bundle);
  std::vector<bytes_view> entries;
  for (size_t i = 0; i < count; ++i) entries.push_back(in.sized());
  if (!in.done()) return fail("log: a bundle does not hold exactly {} entries", count);
  return entries;
}

}  // namespace lethe
