#pragma once

#include <array>
#include <optional>
#include <vector>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/log/log_limits.hpp"

/// What the log holds (docs/PROTOCOL.md, section 10).
namespace lethe {

enum class log_kind : uint8_t {
  release = 1,
  roster = 2,
  ohttp_keys = 3,
  issuer_keys = 4,
  policy = 5,
};
inline constexpr std::array log_kinds = {log_kind::release, log_kind::roster, log_kind::ohttp_keys,
                                         log_kind::issuer_keys, log_kind::policy};
/// "release", "roster", "ohttp-keys", "issuer-keys", "policy".
std::string_view name_of(log_kind kind);

inline constexpr size_t log_payload_bytes_max = limits::log_entry_bytes_max - 6;

struct log_entry {
  log_kind kind = log_kind::release;
  uint32_t epoch = 0;
  std::vector<std::byte> payload;  // up to log_payload_bytes_max

  bool operator==(const log_entry&) const = default;
  /// ver(u8) = 1 ‖ kind(u8) ‖ epoch(u32) ‖ payload.
  std::vector<std::byte> to_bytes() const;
  static result<log_entry> from_bytes(bytes_view bytes);
};

/// Whether an epoch may follow: the first of a kind may be any, each next is one more.
enum class epoch_step : uint8_t { next, repeated, gap };

/// The last epoch of each kind.
class epoch_index {
 public:
  epoch_step step(log_kind kind, uint32_t epoch) const;
  std::optional<uint32_t> last(log_kind kind) const { return last_[slot(kind)]; }
  void take(log_kind kind, uint32_t epoch) { last_[slot(kind)] = epoch; }

 private:
  static size_t slot(log_kind kind) { return size_t(kind) - 1; }
  std::array<std::optional<uint32_t>, log_kinds.size()> last_;
};

/// Bundles: entries, each behind its u16 length. Exactly `count` of them and nothing else.
result<std::vector<bytes_view>> split_bundle(bytes_view bundle, size_t count);

}  // namespace lethe
