#include "runtime/client/wallet_change.hpp"

#include <algorithm>

#include "runtime/client/wallet_fields.hpp"

namespace lethe {

namespace {

/// Its place is of no meaning: whoever takes one draws.
template <class T>
T take_out(std::vector<T>& from, typename std::vector<T>::iterator at) {
  T taken = *at;
  *at = from.back();
  from.pop_back();
  return taken;
}

struct applying {
  wallet_content& to;

  bool operator()(const token_shown& c) {
    auto at = std::ranges::find(to.tokens, c.nonce, &private_token::nonce);
    if (at == to.tokens.end()) return false;
    to.spends.push_back({take_out(to.tokens, at), c.change});
    return true;
  }
  bool operator()(const token_back& c) {
    auto spend = ended(c.nonce);
    if (spend) to.tokens.push_back(spend->token);
    return spend.has_value();
  }
  bool operator()(const token_gone& c) { return ended(c.nonce).has_value(); }
  bool operator()(const token_changed& c) {
    if (!ended(c.nonce)) return false;
    to.tokens.push_back(c.change);
    return true;
  }

  std::optional<wallet_spend> ended(const hash32& nonce) {
    auto at = std::ranges::find(
        to.spends, nonce, [](const wallet_spend& s) -> auto& { return s.token.nonce; });
    if (at == to.spends.end()) return std::nullopt;
    return take_out(to.spends, at);
  }
};

size_t bytes_of(const wallet_change& c) {
  const size_t more = std::holds_alternative<token_shown>(c)     ? sizeof(change_choices)
                      : std::holds_alternative<token_changed>(c) ? private_token::wire_bytes
                                                                 : 0;
  return 1 + sizeof(hash32) + more;
}

result<wallet_change> read_change(field_reader& in) {
  const auto kind = in.number<uint8_t>();
  hash32 nonce{};
  copy_into(nonce, in.bytes(sizeof nonce));
  if (kind == 1) {
    auto change = read_choices(in);
    return change ? result<wallet_change>(token_shown{nonce, *change}) : change.why();
  }
  if (kind == 2) return wallet_change(token_back{nonce});
  if (kind == 3) return wallet_change(token_gone{nonce});
  if (kind != 4) return fail("wallet: a change of kind {}", kind);
  auto token = private_token::from_bytes(in.bytes(private_token::wire_bytes));
  return token ? result<wallet_change>(token_changed{nonce, *token}) : token.why();
}

}  // namespace

bool apply_change(const wallet_change& change, wallet_content& to) {
  return std::visit(applying{to}, change);
}

secret_bytes to_bytes(std::span<const wallet_change> changes) {
  size_t size = 0;
  for (const auto& c : changes) size += bytes_of(c);
  secret_bytes out(size);
  byte_writer to{out.bytes()};
  for (const auto& c : changes) {
    to.number(uint8_t(c.index() + 1));
    std::visit([&](const auto& what) { to.put(what.nonce); }, c);
    if (auto* shown = std::get_if<token_shown>(&c)) put_choices(to, shown->change);
    if (auto* changed = std::get_if<token_changed>(&c)) to.put(changed->change.to_bytes());
  }
  check(to.left.empty());
  return out;
}

result<std::vector<wallet_change>> changes_from_bytes(bytes_view bytes) {
  field_reader in(bytes);
  std::vector<wallet_change> changes;
  while (!in.rest().empty()) {
    auto c = read_change(in);
    if (!in.good()) return fail("wallet: a change is cut");
    if (!c) return c.why();
    changes.push_back(*std::move(c));
  }
  return changes;
}

}  // namespace lethe
