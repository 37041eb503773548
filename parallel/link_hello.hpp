#pragma once

#include <array>
#include <optional>
#include <string>

#include "runtime/base/result.hpp"
#include "runtime/crypto/key_bytes.hpp"

/// How two ranks find out that they belong to the same group. The one that connects says hello, the
/// other answers with its own hello and a proof over both; the first ends with its proof. Both
/// hellos hold fresh random bytes, so neither a proof nor a key of any other connection fits.
namespace lethe {

/// What the ranks of a group agree on.
struct group_terms {
  uint64_t epoch = 0;
  std::string name;  // which group of the epoch
  uint32_t rank = 0, size = 1;
  /// Frames go as they are: the config says that nobody else sees the link.
  bool protected_link = false;
  key_bytes secret;  // of the epoch, 32 bytes: whoever has it is a rank
};

/// A group has two connections between each two ranks: a message that nobody has asked for yet must
/// not hold up what comes behind it.
enum class lane : uint8_t { calls, messages };
inline constexpr size_t lanes = 2;

inline constexpr size_t hello_bytes = 88, proof_bytes = 32;
using hello = std::array<std::byte, hello_bytes>;
using proof = std::array<std::byte, proof_bytes>;

/// From terms.rank to `to`.
hello say_hello(const group_terms& terms, uint32_t to, lane on);
/// Who said it, and on which lane, if it is meant for this rank and its terms are ours.
struct caller {
  uint32_t rank;
  lane on;
};
result<caller> read_hello(const group_terms& terms, const hello& said);

/// Both are of the connection whose hellos these are.
enum class direction : uint8_t { to_listener, to_caller };
proof prove(const group_terms& terms, direction way, const hello& first, const hello& second);
bool proves(const group_terms& terms, direction way, const hello& first, const hello& second,
            const proof& given);

/// Key, and where nonces count from.
struct link_key {
  key_bytes key, nonce;
};
link_key derive_key(const group_terms& terms, direction way, const hello& first,
                    const hello& second);

}  // namespace lethe
