#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/crypto/sha256.hpp"
#include "runtime/store/sqlite_file.hpp"

namespace lethe {

/// A token, as the stores know it.
struct token_id {
  hash32 key_id;
  hash32 nonce;
  bool operator==(const token_id&) const = default;
};

/// How a request ended after its token was spent. Change is due for all but the last.
enum class outcome : uint8_t { not_dispatched = 1, refused_by_node, node_failed, delivered };

/// A token's spend, and the digest of the TokenRequest that its change would answer. `fresh` is the
/// ledger's answer.
struct spend_entry {
  token_id token;
  hash32 change_digest;
  bool fresh = false;
};

struct settlement {
  token_id token;
  outcome is = outcome::delivered;
};

struct change_state {
  enum class what : uint8_t { none, open, due, delivered };
  what is = what::none;
  hash32 change_digest{};  // if due
};

/// The tokens that were spent and what came of it (docs/PROTOCOL.md, section 7). Used by one thread
/// at a time. Errors hold nothing of a token.
class spend_ledger {
 public:
  virtual ~spend_ledger() = default;

  /// Records all of them; when it returns, they are on the disk. `fresh` says of each whether it
  /// was not there. A token's first outcome stays; one for a token that is not there is nothing.
  /// After an error nothing is fresh, and what may have been recorded has change due, at the latest
  /// when the ledger is opened again.
  virtual result<void> commit(std::span<spend_entry> spends,
                              std::span<const settlement> settles) = 0;
  virtual result<change_state> state(const token_id& token) = 0;
  /// Of one key. SQLite's reads through them all.
  virtual result<uint64_t> count(const hash32& key_id) = 0;
  /// Removes some of a key's tokens, so that spends needn't wait for all. True if there are more.
  /// Where gateways share a ledger all of the key count as spent from then on.
  virtual result<bool> drop_some(const hash32& key_id) = 0;
};

/// A file of one gateway. What an earlier run left open gets node_failed.
result<std::unique_ptr<spend_ledger>> open_sqlite_spends(const store_place& place);

/// redis://[:password@]host[:port][/db] or unix:/path, shared by gateways. `gateway` names this one
/// and no other that runs: what an earlier run under this name left open gets node_failed.
result<std::unique_ptr<spend_ledger>> open_redis_spends(std::string_view url,
                                                        std::string_view gateway);

}  // namespace lethe
