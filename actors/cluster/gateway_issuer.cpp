#include <fmt/format.h>

#include <algorithm>

#include "actors/cluster/gateway.hpp"
#include "runtime/gateway/sealed_names.hpp"

namespace lethe {

namespace {

constexpr uint64_t ask_again_s = 60, ask_soon_s = 1;  // the issuer, for its keys
constexpr uint64_t cosign_every_s = 30;               // clients take what is younger than 120 s

}  // namespace

/// All that has its time, but requests.
void gateway_state::turn_keys(uint64_t now_s) {
  keys_->forget(now_s);
  result<void> good;
  if (now_s >= rotate_at_s_ && keys_->rotate(now_s)) {
    rotate_at_s_ = now_s + key_life_s;
    good = setup_.publish->gateway_keys(keys_->published(), now_s);
  }
  if (good && now_s >= cosign_at_s_) {
    cosign_at_s_ = now_s + cosign_every_s;
    good = setup_.publish->recosign(now_s);
  }
  if (!good) note_ = good.why().text;
  turn_token_keys(now_s);
  if (now_s >= ask_issuer_at_s_) ask_issuer();
}

void gateway_state::ask_issuer() {
  ask_issuer_at_s_ = setup_.now_s() + (issuer_heard_ ? ask_again_s : ask_soon_s);
  http_call call{.to = setup_.issuer.origin, .path = std::string(token_directory_path)};
  ask_whole(*setup_.client, std::move(call), [this, queue = setup_.queue](result<http_whole> how) {
    queue->post([this, how = std::move(how)] { issuer_said(how); });
  });
  // What was logged will do: the last roster is of engines that are gone.
  if (!rosters_wanted_ && setup_.publish->issuer()) want_rosters();
}

void gateway_state::issuer_said(const result<http_whole>& how) {
  if (!how || how->head.status != 200) {
    note_ = how ? fmt::format("the issuer answers {} to a question for its keys", how->head.status)
                : "the issuer is not reached: " + how.why().text;
    return;
  }
  auto keys = read_directory(how->body);
  if (!keys) {
    note_ = "the issuer's directory: " + keys.why().text;
    return;
  }
  auto before = setup_.publish->issuer();
  auto logged = setup_.publish->issuer_keys(*keys, setup_.now_s());
  if (!logged) {
    note_ = logged.why().text;
    return;
  }
  if (note_.starts_with("the issuer")) note_.clear();
  issuer_heard_ = true;
  drop_retired(before);
  want_rosters();
}

/// Tokens of keys that the issuer no longer publishes are redeemed nowhere: they needn't be kept.
void gateway_state::drop_retired(const std::optional<token_directory>& before) {
  const auto& now = setup_.publish->issuer()->keys;
  for (const auto& old : before ? before->keys : std::vector<published_key>()) {
    bool kept = std::ranges::any_of(now, [&](const auto& k) { return k.key == old.key; });
    if (!kept && !setup_.spends->drop_key(sha256({old.key}), [](const result<void>&) {}))
      note_ = "tokens of a retired key are still kept: the store is busy";
  }
}

/// Those keys that are valid now, the current one first: what comes later is not redeemed yet.
void gateway_state::turn_token_keys(uint64_t now_s) {
  const auto& directory = setup_.publish->issuer();
  const auto* current = directory ? directory->usable(now_s) : nullptr;
  if (!current || (!token_keys_.empty() && token_keys_.front().spki() == current->key &&
                   token_keys_seen_ == *directory))
    return;
  token_keys_seen_ = *directory;
  token_keys_.clear();
  for (const auto& published : directory->keys) {
    if (published.not_before_s.value_or(0) > now_s) continue;
    auto key = token_key::from_spki(published.key);
    if (!key) continue;
    bool first = published.key == current->key;
    token_keys_.insert(first ? token_keys_.begin() : token_keys_.end(), *std::move(key));
  }
}

/// Engines get the keys to come, too: a roster may outlast a turn of token epochs.
void gateway_state::want_rosters() {
  turn_token_keys(setup_.now_s());
  if (token_keys_.empty()) return;
  rosters_wanted_ = true;
  const auto& keys = setup_.publish->issuer()->keys;
  self_->send(directory_, clerk_.write<schema::TokenKeys>(0, [&](schema::TokenKeys::Builder b) {
    auto list = b.initKeys(uint32_t(keys.size()));
    for (uint32_t i = 0; i < list.size(); ++i) list.set(i, data_of(keys[i].key));
    b.setEpochS(setup_.epoch_s);
    b.setGraceS(setup_.grace_s);
    b.setRoster(setup_.publish->last_roster());
  }));
}

void gateway_state::publish(const wire<schema::Publish>& m) {
  clerk_.read(m, [&](schema::Publish::Reader r) {
    std::vector<published_node> nodes;
    for (auto n : r.getNodes()) {
      auto node = node_public::from_bytes(bytes_of(n.getNode()));
      if (node && n.getCapacity() > 0)
        nodes.push_back({*std::move(node), n.getCapacity(), n.getModel()});
    }
    auto logged = setup_.publish->roster(r.getRoster(), nodes, setup_.now_s());
    if (!logged) note_ = logged.why().text;
  });
  ask_witnesses();
  want_rosters();  // tells which one is published now
}

/// The gateway knows whether change is due; only the issuer can sign it.
void gateway_state::claim(exchange& x) {
  const auto& token = x.claimed->token;
  bool asked = setup_.spends->ask_change(
      {token.key_id, token.nonce},
      [this, queue = setup_.queue, id = x.http.id](result<change_state> state) {
        queue->post([this, id, state = std::move(state)] { claim_allowed(id, state); });
      });
  if (!asked) problem(x, {503, "too many claims wait; ask later"});
}

void gateway_state::claim_allowed(uint64_t http_id, const result<change_state>& state) {
  auto* x = find_http(http_id);
  if (!x) return;
  if (!state) return problem(*x, {503, "what became of the token could not be read"});
  if (state->is == change_state::what::none) return spend_claimed(*x);
  if (state->is == change_state::what::open)
    return problem(*x, {409, "its request has not ended; ask later"});
  if (state->is != change_state::what::due)
    return problem(*x, {403, "no change is due for this token"});
  if (state->change_digest != x->claimed->change.digest())
    return problem(*x, {403, "the token was spent with another request for change"});
  http_call call{.to = setup_.issuer.origin,
                 .method = "POST",
                 .path = std::string(sealed_names::change_path),
                 .fields = {{"Authorization", "Bearer " + setup_.issuer.secret},
                            {"Content-Type", std::string(sealed_names::claim)}},
                 .body = std::string(as_text(x->claimed->bytes))};
  ask_whole(*setup_.client, std::move(call),
            [this, queue = setup_.queue, http_id](result<http_whole> how) {
              queue->post([this, http_id, how = std::move(how)] { change_came(http_id, how); });
            });
}

/// Its request was lost on its way: the claim spends the token, so that it comes no more.
void gateway_state::spend_claimed(exchange& x) {
  if (token_keys_.empty()) return problem(x, {503, "the issuer's keys are not known yet"});
  const auto& token = x.claimed->token;
  const auto* key = redeemable(token.key_id);
  if (!key || !verify_token(token, *key, setup_.publish->challenge().digest()))
    return problem(x, {403, "no change is due for this token"});
  if (!spend(x, {token.key_id, token.nonce}, x.claimed->change.digest(),
             &gateway_state::claimed_spent))
    problem(x, {503, "too many tokens are being spent; ask later"});
}

void gateway_state::claimed_spent(uint64_t http_id, const token_id& token,
                                  const result<spend_answer>& how) {
  bool fresh = how && *how == spend_answer::fresh;
  if (fresh && !setup_.spends->settle(token, outcome::not_dispatched))
    note_ = "outcomes of requests are being lost";
  auto* x = find_http(http_id);
  if (!x) return;
  if (!how) return problem(*x, {503, "the token's spend could not be recorded"});
  claim(*x);  // it is known now: due, or its request came first
}

void gateway_state::change_came(uint64_t http_id, const result<http_whole>& how) {
  auto* x = find_http(http_id);
  if (!x) return;
  if (!how) return problem(*x, {503, "the issuer is not reached; ask later"});
  if (how->head.status == 403)
    return problem(*x, {403, "the issuer has signed other change for this token"});
  if (how->head.status != 200)
    return problem(*x, {503, "the issuer does not sign it now; ask later"});
  ++count_.changed;
  std::vector<std::byte> out;
  auto good = x->answer->whole(200, token_response_media, how->body, out);
  write(*x, good, out);
}

void gateway_state::tell_state() {
  self_->send(directory_,
              clerk_.write<schema::ServiceState>(0, [&](schema::ServiceState::Builder b) {
                b.setRole("gateway");
                auto others = witnesses_ ? witnesses_->note() : std::string();
                b.setNote(note_ + (note_.empty() || others.empty() ? "" : "; ") + others);
                std::pair<const char*, uint64_t> counts[] = {
                    {"opened", count_.requests},
                    {"looks", count_.looks},
                    {"spent", count_.spent},
                    {"answered", count_.answered},
                    {"refused", count_.refused},
                    {"changed", count_.changed},
                    {"open", exchanges_.size()},
                    {"roster", setup_.publish->last_roster()},
                    {"cosignatures", setup_.publish->cosignatures()}};
                auto list = b.initCounts(uint32_t(std::size(counts)));
                for (uint32_t i = 0; i < list.size(); ++i) {
                  list[i].setName(counts[i].first);
                  list[i].setNumber(counts[i].second);
                }
              }));
}

}  // namespace lethe
