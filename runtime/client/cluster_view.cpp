#include "runtime/client/cluster_view.hpp"

#include <algorithm>

#include "runtime/base/durable_file.hpp"
#include "runtime/client/client_limits.hpp"
#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/shape_text.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/log/roster_summary.hpp"

namespace lethe {

namespace {

using log_bytes = std::vector<std::byte>;

// Kinds that a cluster cannot serve without. Releases are logged where they are attested.
const std::vector<log_kind> kinds_needed = {log_kind::roster, log_kind::ohttp_keys,
                                            log_kind::issuer_keys, log_kind::policy};

constexpr std::string_view strict_policy = "strict";

/// A wallet may serve several logs: gateways that share what was spent have one each.
std::filesystem::path beside(const trust_file& trust, const char* ending) {
  auto path = trust.wallet;
  path += fmt::format(".{:016x}{}", load_be<uint64_t>(trust.log.log.public_key().data()), ending);
  return path;
}
std::filesystem::path memory_file(const trust_file& t) { return beside(t, ".log"); }
std::filesystem::path evidence_file(const trust_file& t) { return beside(t, ".evidence"); }

error stopped_by(const trust_file& trust) {
  return fail(
      "{}: evidence that this log told two stories; keep it, show it, and trust that log no more",
      evidence_file(trust).string());
}

/// The one key that every client takes: the first.
result<ohttp_config> key_to_use(bytes_view keys) {
  auto read = read_ohttp_keys(keys);
  if (!read) return read.why();
  if (auto suite = read->front().suite(); !suite) return suite.why();
  return read->front();
}

std::string buyers_text(std::optional<uint64_t> buyers) {
  if (!buyers) return "nobody says how many accounts";
  return *buyers > 0 ? fmt::format("{} accounts or more", *buyers) : "fewer than ten accounts";
}

/// A policy that is called strict shapes answers, whatever anybody accepts.
result<void> check_shape(const log_policy& p, const policy_bounds& b) {
  const shape_mode mode = p.shape().mode();
  if (mode == shape_mode::off && p.name == strict_policy)
    return fail("policy: it is named {}, and does not shape answers", p.name);
  if (mode < b.shape)
    return fail("policy: the shape of answers is \"{}\"; the trust file accepts \"{}\" and more",
                name_of(mode), name_of(b.shape));
  return {};
}

}  // namespace

/// What is found out before any of it is given out.
struct cluster_view::looking {
  uint64_t now_s;
  std::stop_token stop;
  cluster_state state;
  std::vector<std::byte> shown;  // application/ohttp-keys, as the relay passes them on
  bool others = false;           // they are not the logged ones

  call_end step(const char* name, std::string detail) {
    state.steps.push_back({name, true, std::move(detail)});
    return {};
  }
};

result<token_key> cluster_state::token_key_at(uint64_t now_s) const {
  const published_key* key = issuer.usable(now_s);
  if (!key) return fail("logged keys: no issuer's key is valid yet");
  return token_key::from_spki(key->key);
}

result<void> check_policy(const log_policy& p, const trust_file& trust) {
  const policy_bounds& b = trust.policy;
  if (p.name != b.name)
    return fail("policy: it is named {}, and the trust file wants {}; [policy] name", p.name,
                b.name);
  auto above = [](const char* what, uint32_t is, uint32_t most) {
    return fail("policy: {} is {}; the trust file accepts {}", what, is, most);
  };
  if (p.candidates > b.candidates_max) return above("k", p.candidates, b.candidates_max);
  if (p.redraws > b.redraws_max) return above("r", p.redraws, b.redraws_max);
  if (p.share_max_permille > b.share_max_permille)
    return above("a node's share, per mille,", p.share_max_permille, b.share_max_permille);
  if (p.roster_age_max_s > b.roster_age_max_s)
    return above("a roster's age", p.roster_age_max_s, b.roster_age_max_s);
  if (p.nodes_min < b.nodes_min)
    return fail("policy: {} nodes are enough for it; the trust file wants {}", p.nodes_min,
                b.nodes_min);
  if (auto ok = check_shape(p, b); !ok) return ok;
  auto challenge = token_challenge::from_bytes(p.token_challenge);
  if (!challenge) return challenge.why();
  if (challenge->issuer != trust.issuer_name || challenge->origin != trust.origin)
    return fail("policy: its challenge names another issuer or origin than the trust file");
  if (challenge->redemption_context)
    return fail("policy: its challenge has a redemption context, which could tell clients apart");
  return {};
}

cluster_view::cluster_view(const trust_file& trust, oblivious_channel& channel, view_memory memory,
                           std::function<uint64_t()> steady_s)
    : trust_(trust),
      channel_(channel),
      steady_s_(std::move(steady_s)),
      reader_({.trust = trust.log,
               .needed = kinds_needed,
               .roster_age_max_s = trust.policy.roster_age_max_s},
              memory.log),
      memory_(std::move(memory)) {}

result<std::unique_ptr<cluster_view>> cluster_view::open(const trust_file& trust,
                                                         oblivious_channel& channel,
                                                         std::function<uint64_t()> steady_s) {
  std::error_code ignored;
  if (std::filesystem::exists(evidence_file(trust), ignored)) return stopped_by(trust);
  auto memory = view_memory::read(memory_file(trust));
  if (!memory) return memory.why();
  return std::unique_ptr<cluster_view>(
      new cluster_view(trust, channel, *std::move(memory), std::move(steady_s)));
}

call_result<std::shared_ptr<const cluster_state>> cluster_view::at(uint64_t now_s,
                                                                   std::stop_token stop) {
  {
    std::lock_guard lock(mutex_);
    if (last_ && now_s < last_->good_until_s) return last_;
    if (auto no = hangs_.refusal(steady_s_())) return *std::move(no);
  }
  return refresh(now_s, std::move(stop));
}

call_result<std::shared_ptr<const cluster_state>> cluster_view::refresh(uint64_t now_s,
                                                                        std::stop_token stop) {
  std::lock_guard one(reading_);
  {
    std::lock_guard lock(mutex_);  // whoever waited for one that hung needn't hang
    if (auto no = hangs_.refusal(steady_s_())) return *std::move(no);
    hangs_.begins(steady_s_());
  }
  looking l{.now_s = now_s, .stop = std::move(stop)};
  auto end = look(l);
  std::lock_guard lock(mutex_);
  if (!l.stop.stop_requested()) hangs_.ended(end, steady_s_());
  if (reader_.evidence()) last_.reset();
  if (!end) return end;
  last_ = std::make_shared<const cluster_state>(std::move(l.state));
  return last_;
}

/// Twice at most: the gateway may change its keys between one look and the next.
call_end cluster_view::look(looking& l) {
  call_end end;
  for (int tries = 0; tries < 2; ++tries) {
    l.state = {};
    l.others = false;
    auto keys = channel_.fetch_keys(l.stop);
    if (!keys) return keys.end;
    l.shown = std::move(*keys);
    end = look_with(l, l.shown);
    if (end.fault != call_fault::stale_key && !l.others) break;
  }
  return end;
}

call_end cluster_view::look_with(looking& l, const std::vector<std::byte>& keys) {
  auto key = key_to_use(keys);
  if (!key) return {call_fault::gateway, key.why()};
  l.state.gateway_key = *std::move(key);
  l.step("gateway keys", fmt::format("key {} through the relay", l.state.gateway_key.key_id));
  for (auto part :
       {&cluster_view::read_log, &cluster_view::read_policy, &cluster_view::read_roster})
    if (auto end = (this->*part)(l); !end) return end;
  return {};
}

call_end cluster_view::read_log(looking& l) {
  call_end fetched;
  auto fetch = [&](std::string_view path) -> result<log_bytes> {
    auto page = channel_.ask_whole(l.state.gateway_key, {.path = fmt::format("/{}", path)},
                                   limits::look_bytes_max, l.stop);
    if (!page) return fetched = page.end, page.end.why;
    if (page->status == 200) return std::move(page->body);
    fetched = fault(call_fault::gateway, "{}: the gateway answers {}", path, page->status);
    return fetched.why;
  };
  if (auto ok = reader_.read(fetch, l.now_s); !ok) {
    if (reader_.evidence()) return keep_evidence(ok.why());
    if (fetched) return {call_fault::trust, ok.why()};
    fetched.why = ok.why();
    return fetched;
  }
  if (auto end = keep({memory_.before, reader_.memory()}); !end) return end;
  l.step("log head", fmt::format("{} entries, signed by {} and {} of {} witnesses",
                                 reader_.memory()->note.head.size, trust_.log.log.name(),
                                 trust_.log.quorum, trust_.log.witnesses.size()));
  if (!std::ranges::equal(reader_.current(log_kind::ohttp_keys)->payload, l.shown)) {
    l.others = true;
    return fault(call_fault::trust,
                 "gateway keys: those that the relay passes on are not the logged ones");
  }
  return {};
}

call_end cluster_view::read_policy(looking& l) {
  auto policy = log_policy::from_entry(*reader_.current(log_kind::policy));
  if (!policy) return {call_fault::trust, policy.why()};
  if (auto ok = check_policy(*policy, trust_); !ok) return {call_fault::trust, ok.why()};
  l.state.policy = *std::move(policy);
  l.state.challenge = *token_challenge::from_bytes(l.state.policy.token_challenge);
  auto issuer = read_directory(as_text(reader_.current(log_kind::issuer_keys)->payload));
  if (!issuer) return {call_fault::trust, issuer.why()};
  l.state.issuer = *std::move(issuer);
  if (const auto* logged = reader_.current(log_kind::release)) {
    if (logged->payload.size() != hash32().size())
      return fault(call_fault::trust, "log: release {} has no digest's length", logged->epoch);
    std::ranges::copy(logged->payload, l.state.release.emplace().begin());
  }
  l.step("logged keys",
         fmt::format("the gateway's and {} of the issuer's; policy {}, k = {}, r = {}",
                     l.state.issuer.keys.size(), l.state.policy.name, l.state.policy.candidates,
                     l.state.policy.redraws));
  l.step("shape", text_of(l.state.policy.shape()));
  read_crowds(l);
  return {};
}

/// A token is one of as many as its key signed: who bought under it is the crowd that it hides in.
void cluster_view::read_crowds(looking& l) {
  const uint32_t wanted = trust_.policy.buyers_min;
  const uint64_t least = std::max(l.state.policy.buyers_min, wanted);
  for (const auto& key : l.state.issuer.over(l.now_s)) {
    const uint64_t buyers = key.buyers.value_or(0);
    auto detail = fmt::format("{} bought under the key before", buyers_text(key.buyers));
    if (buyers < wanted) l.state.small_crowds.push_back(sha256({key.key}));
    if (buyers < least)
      detail += fmt::format("; {} are wanted: its tokens hide among few{}", least,
                            buyers < wanted ? ", and are not shown" : "");
    l.state.steps.push_back({"crowd", buyers >= least, std::move(detail)});
  }
}

call_end cluster_view::read_roster(looking& l) {
  const log_entry& logged = *reader_.current(log_kind::roster);
  auto path = fmt::format("{}/{}", sealed_names::roster_path, logged.epoch);
  auto page =
      channel_.ask_whole(l.state.gateway_key, {.path = path}, limits::look_bytes_max, l.stop);
  if (!page) return page.end;
  if (page->status != 200 || page->content_type != sealed_names::roster)
    return fault(call_fault::gateway, "{}: the gateway answers {} and no roster", path,
                 page->status);
  auto whole = verify_roster(page->body, logged);
  if (!whole) return {call_fault::trust, whole.why()};
  if (auto ok = check_roster(*whole, l.state.policy, memory_.before); !ok)
    return {call_fault::trust, ok.why()};
  uint64_t until = roster_summary::from_entry(logged)->not_before + l.state.policy.roster_age_max_s;
  for (const roster_leaf& leaf : whole->leaves) {
    if (!trust_.accepts(leaf.evidence_kind))
      return fault(call_fault::trust,
                   "roster: a node shows evidence \"{}\", which the trust file does not accept",
                   leaf.evidence_kind);
    until = std::min(until, leaf.not_after);
  }
  if (l.now_s >= until)
    return fault(call_fault::trust, "roster: epoch {} is over since {} s", logged.epoch,
                 l.now_s - until);
  if (auto end = keep({roster_before{whole->epoch, whole->capacity()}, memory_.log}); !end)
    return end;
  l.step("roster",
         fmt::format(
             "epoch {}: {} nodes, capacity {}{}", whole->epoch, whole->leaves.size(),
             whole->capacity(),
             l.state.policy.attested() ? "" : "; nothing attests that they are so many machines"));
  l.state.nodes = *std::move(whole);
  l.state.good_until_s = until;
  return {};
}

/// On the disk before anything is done with it.
call_end cluster_view::keep(view_memory next) {
  auto bytes = next.to_bytes();
  if (bytes != memory_.to_bytes())
    if (auto ok = write_durable(memory_file(trust_), bytes, 0600); !ok)
      return {call_fault::here, ok.why()};
  memory_ = std::move(next);
  return {};
}

call_end cluster_view::keep_evidence(const error& why) {
  std::error_code ignored;
  if (std::filesystem::exists(evidence_file(trust_), ignored))
    return {call_fault::trust, stopped_by(trust_)};
  auto text = reader_.evidence()->text();
  auto ok = write_durable(evidence_file(trust_), as_bytes(text), 0600);
  return {call_fault::trust, ok ? why : fail("{}; {}", why.text, ok.why().text)};
}

}  // namespace lethe
