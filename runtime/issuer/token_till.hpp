#pragma once

#include <string>

#include "runtime/base/secret_bytes.hpp"
#include "runtime/store/account_store.hpp"
#include "runtime/store/change_store.hpp"
#include "runtime/token/token_issuer.hpp"

namespace lethe {

/// What an issuer answers. What `why` says goes to the client, `fault` to its operator.
struct till_answer {
  int status = 200;
  std::string_view media = "text/plain";
  std::vector<std::byte> body;
  std::string why;
  uint64_t retry_after_s = 0;
  std::string fault;
  uint32_t sold = 0, changed = 0;  // tokens; change is counted once
};

struct till_rules {
  uint32_t epoch_s = 604'800;
  uint32_t batch = 64;
};

/// Sells tokens to accounts and makes change for the gateway: who buys is known, and of change only
/// the spent token. Any thread may ask; each call waits for the disk.
class token_till {
 public:
  token_till(till_rules rules, account_store& accounts, change_store& changes);

  /// A TokenRequest, or a whole batch of them. The account is charged durably before anything is
  /// signed, for all that is asked or for nothing.
  till_answer sell_one(std::string_view secret, bytes_view body, const token_issuer& keys,
                       uint64_t now_s);
  till_answer sell_batch(std::string_view secret, bytes_view body, const token_issuer& keys,
                         uint64_t now_s);
  /// A spent token and the TokenRequest that its change answers; the gateway has checked what the
  /// token was bought for.
  till_answer change(bytes_view body, const token_issuer& keys, uint64_t now_s);

 private:
  struct buyer {
    std::string name;
    std::optional<till_answer> refused;
  };
  buyer know(std::string_view secret);
  /// Nothing: it is paid.
  std::optional<till_answer> pay(const buyer& who, std::span<const token_request> requests,
                                 const token_issuer& keys, uint64_t now_s);

  const till_rules rules_;
  account_store& accounts_;
  change_store& changes_;
};

}  // namespace lethe
