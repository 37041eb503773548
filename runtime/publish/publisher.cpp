#include "runtime/publish/publisher.hpp"

#include "runtime/base/durable_file.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/base/unix_time.hpp"
#include "runtime/log/log_limits.hpp"
#include "runtime/publish/kept_keys.hpp"

namespace lethe {

namespace {

constexpr uint32_t request_buckets[] = {1u << 10,   4u << 10, 16u << 10, 64u << 10,
                                        256u << 10, 1u << 20, 4u << 20,  16u << 20};

log_policy policy_of(const publish_setup& setup, const token_challenge& challenge) {
  log_policy p;
  p.name = publisher::policy_name;
  p.candidates = setup.candidates;
  p.redraws = 2;
  p.request_buckets.assign(std::begin(request_buckets), std::end(request_buckets));
  p.chunk_bytes = limits::chunk_plain_bytes_max;
  p.nodes_min = setup.minimum_nodes;
  p.growth_max_permille = 1'000'000;  // engines come and go as their operator likes
  p.roster_age_max_s = setup.roster_age_max_s();
  p.evidence_kinds = {std::string(no_evidence)};
  p.token_challenge = challenge.to_bytes();
  p.token_batch = setup.batch;
  p.buyers_min = 2;
  return p;
}

/// The log in a folder, or a new one.
result<log_file> log_in(const std::filesystem::path& folder, note_signer signer) {
  std::error_code ignored;
  bool there = std::filesystem::exists(folder / "head", ignored);
  return there ? log_file::open(folder, std::move(signer))
               : log_file::create(folder, std::move(signer));
}

struct signers {
  note_signer log, witness;
};

result<signers> keep_signers(const publish_setup& setup) {
  auto log = keep_note_key(setup.folder / "log.key", setup.origin, note_algorithm::ed25519);
  if (!log) return log.why();
  auto own = keep_note_key(setup.folder / "witness.key", setup.origin + "-witness",
                           note_algorithm::cosignature);
  if (!own) return own.why();
  return signers{*std::move(log), *std::move(own)};
}

}  // namespace

result<public_note_keys> keep_public_keys(const publish_setup& setup) {
  std::error_code failed;
  std::filesystem::create_directories(setup.folder, failed);
  if (failed) return fail("{}: {}", setup.folder.string(), failed.message());
  auto kept = keep_signers(setup);
  if (!kept) return kept.why();
  return public_note_keys{kept->log.key(), kept->witness.key()};
}

std::string model_class_of(std::string_view model) {
  std::string word(model.substr(0, limits::roster_word_bytes_max));
  for (char& c : word) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                c == '-' || c == '/';
    if (!fits) c = '-';
  }
  return word.empty() ? "model" : word;
}

publisher::publisher(publish_setup setup, log_file log, witness own, signing_key identity,
                     public_note_keys keys)
    : setup_(std::move(setup)),
      log_(std::move(log)),
      witness_(std::move(own)),
      identity_(std::move(identity)),
      note_keys_(std::move(keys)),
      challenge_{setup_.issuer, {}, setup_.origin} {}

result<std::unique_ptr<publisher>> publisher::open(const publish_setup& setup) {
  std::error_code failed;
  std::filesystem::create_directories(setup.folder / "log", failed);
  std::filesystem::create_directories(setup.folder / "witness", failed);
  std::filesystem::create_directories(setup.folder / "rosters", failed);
  if (failed) return fail("{}: {}", setup.folder.string(), failed.message());
  auto signers = keep_signers(setup);
  if (!signers) return signers.why();
  auto identity = keep_signing_key(setup.folder / "identity.key");
  if (!identity) return identity.why();
  public_note_keys keys{signers->log.key(), signers->witness.key()};
  auto log = log_in(setup.folder / "log", std::move(signers->log));
  if (!log) return log.why();
  auto own = witness::open(setup.folder / "witness", std::move(signers->witness), {keys.log});
  if (!own) return own.why();
  std::unique_ptr<publisher> made(new publisher(setup, *std::move(log), *std::move(own),
                                                *std::move(identity), std::move(keys)));
  made->policy_ = policy_of(made->setup_, made->challenge_);
  if (auto ok = made->read_last(); !ok) return ok.why();
  if (auto ok = made->log(log_kind::release, setup.release, unix_s()); !ok) return ok.why();
  return made;
}

/// What the log's newest entries say, and the rosters behind them.
result<void> publisher::read_last() {
  for (uint64_t i = log_.head().head.size; i-- > 0 && newest_.size() < log_kinds.size();) {
    auto entry = log_.entry(i);
    if (!entry) return entry.why();
    newest_.emplace(entry->kind, std::move(entry->payload));
  }
  if (auto known = newest_.find(log_kind::issuer_keys); known != newest_.end()) {
    auto keys = read_directory(as_text(known->second));
    if (!keys) return keys.why();
    issuer_ = *std::move(keys);
  }
  for (uint32_t number : {last_roster(), last_roster() - 1}) {
    if (number == 0 || number > last_roster()) continue;
    auto bytes = read_text(roster_file(number), roster_bytes_max);
    if (bytes) rosters_[number].assign(as_bytes(*bytes).begin(), as_bytes(*bytes).end());
  }
  if (auto known = newest_.find(log_kind::policy); known != newest_.end()) {
    auto logged = log_policy::parse(as_text(known->second));
    if (!logged) return logged.why();
    policy_.classes = logged->classes;
  }
  // A crash may have come between a head and its cosignature.
  const auto* seen = witness_.last(setup_.origin);
  if (log_.head().head.size == 0) return {};
  if (log_.published() && log_.published()->head == log_.head().head) return {};
  uint64_t both = std::min(seen ? seen->size : 0, log_.head().head.size);
  return cosign(log_.head(), both, unix_s());
}

/// Clients take nodes of the classes that the policy has, each with its capacity.
result<void> publisher::log_policy_of(std::span<const published_node> nodes, uint64_t now_s) {
  for (const auto& n : nodes) policy_.classes[model_class_of(n.model)] = n.capacity;
  auto text = policy_.text();
  return log(log_kind::policy, as_bytes(text), now_s);
}

result<void> publisher::log(log_kind kind, bytes_view payload, uint64_t now_s) {
  auto last = newest_.find(kind);
  if (last != newest_.end() && std::ranges::equal(last->second, payload)) return {};
  return append({kind, log_.last_epoch(kind).value_or(0) + 1, {payload.begin(), payload.end()}},
                now_s);
}

result<void> publisher::append(const log_entry& entry, uint64_t now_s) {
  uint64_t seen = log_.head().head.size;
  auto head = log_.append({&entry, 1});
  if (!head) return head.why();
  newest_[entry.kind] = entry.payload;
  return cosign(*head, seen, now_s);
}

result<void> publisher::cosign(const signed_head& head, uint64_t seen, uint64_t now_s) {
  witness_ask ask{seen, log_.consistency(seen), head};
  auto answer = witness_.add_checkpoint(ask.text(), now_s);
  if (answer.status != 200)
    return fail(
        "log: its witness answers {}: it remembers another history; restore both folders "
        "from one backup",
        answer.status);
  auto lines = parse_signatures(answer.body);
  if (!lines) return lines.why();
  cosigned_ = head;
  cosigned_.signatures.insert(cosigned_.signatures.end(), lines->begin(), lines->end());
  ++round_;
  return setup_.witnessed ? result<void>() : publish({});
}

std::string publisher::ask_text(uint64_t old_size) const {
  return witness_ask{old_size, log_.consistency(old_size), log_.head()}.text();
}

result<void> publisher::publish(std::span<const note_signature> others) {
  auto note = cosigned_;
  note.signatures.insert(note.signatures.end(), others.begin(), others.end());
  return log_.published() == note ? result<void>() : log_.publish(note);
}

uint32_t publisher::cosignatures() const {
  return log_.published() ? uint32_t(log_.published()->signatures.size()) - 1 : 0;
}

result<void> publisher::recosign(uint64_t now_s) {
  return cosign(log_.head(), log_.head().head.size, now_s);
}

result<void> publisher::issuer_keys(const token_directory& keys, uint64_t now_s) {
  auto text = write_directory(keys);
  if (auto ok = log(log_kind::issuer_keys, as_bytes(text), now_s); !ok) return ok.why();
  issuer_ = keys;
  return {};
}

result<void> publisher::gateway_keys(bytes_view ohttp_keys, uint64_t now_s) {
  return log(log_kind::ohttp_keys, ohttp_keys, now_s);
}

result<void> publisher::roster(uint32_t number, std::span<const published_node> nodes,
                               uint64_t now_s) {
  if (number != last_roster() + 1)
    return fail("roster {}: the next one is {}", number, last_roster() + 1);
  if (nodes.empty()) return fail("roster {}: it has no node", number);
  if (auto ok = log_policy_of(nodes, now_s); !ok) return ok.why();
  lethe::roster whole{number, {}};
  for (const auto& n : nodes) {
    roster_leaf leaf{.node = n.node,
                     .identity = identity_.public_key(),
                     .model_class = model_class_of(n.model),
                     .capacity = n.capacity,
                     .not_before = now_s,
                     .not_after = now_s + setup_.epoch_s + setup_.grace_s};
    leaf.sign(identity_);
    whole.leaves.push_back(std::move(leaf));
  }
  whole.sort();
  auto bytes = whole.to_bytes();
  // Before the log says that it is there.
  if (auto ok = write_durable(roster_file(number), bytes, 0644); !ok) return ok.why();
  if (auto ok = append(whole.summary(now_s).to_entry(number), now_s); !ok) return ok.why();
  rosters_[number] = std::move(bytes);
  while (rosters_.size() > 2) rosters_.erase(rosters_.begin());
  return {};
}

const std::vector<std::byte>* publisher::roster_bytes(uint32_t number) const {
  auto found = rosters_.find(number);
  return found == rosters_.end() ? nullptr : &found->second;
}

std::filesystem::path publisher::roster_file(uint32_t number) const {
  return setup_.folder / "rosters" / fmt::format("{:010}", number);
}

}  // namespace lethe
