#include "runtime/log/roster_summary.hpp"

#include <algorithm>

#include "runtime/log/be_fields.hpp"

namespace lethe {

log_entry roster_summary::to_entry(uint32_t epoch) const {
  log_entry e{.kind = log_kind::roster, .epoch = epoch};
  append_be(e.payload, not_before);
  append(e.payload, root);
  append_be(e.payload, nodes);
  append_be(e.payload, capacity);
  return e;
}

result<roster_summary> roster_summary::from_entry(const log_entry& entry) {
  if (entry.kind != log_kind::roster)
    return fail("roster: a log entry of kind {}", name_of(entry.kind));
  field_reader in(entry.payload);
  roster_summary s{.not_before = in.number<uint64_t>()};
  bytes_view root = in.bytes(s.root.size());
  std::ranges::copy(root, s.root.begin());
  s.nodes = in.number<uint32_t>();
  s.capacity = in.number<uint64_t>();
  if (!in.done())
    return fail("roster: its log entry has {} bytes of payload", entry.payload.size());
  return s;
}

}  // namespace lethe
