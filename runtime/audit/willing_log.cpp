#include "runtime/audit/willing_log.hpp"

#include "runtime/crypto/random.hpp"

namespace lethe::audit {

namespace {

constexpr const char log_name[] = "audit.invalid/1", witness_name[] = "audit.invalid/witness";
constexpr std::string_view roster_prefix = "roster/";

note_signer log_signer(const willing_log::keys& k) {
  return *note_signer::make(log_name, note_algorithm::ed25519, k.log);
}
note_signer witness_signer(const willing_log::keys& k) {
  return *note_signer::make(witness_name, note_algorithm::cosignature, k.witness);
}

}  // namespace

willing_log::keys willing_log::keys::make() {
  keys k;
  fill_random(k.log);
  fill_random(k.witness);
  return k;
}

note_trust willing_log::keys::trust() const {
  return *note_trust::make(log_signer(*this).key(), {witness_signer(*this).key()}, 1);
}

result<std::unique_ptr<willing_log>> willing_log::create(const std::filesystem::path& folder,
                                                         const keys& with) {
  auto log = log_file::create(folder, log_signer(with));
  if (!log) return log.why();
  return std::unique_ptr<willing_log>(new willing_log(*std::move(log), witness_signer(with)));
}

result<void> willing_log::add(log_kind kind, bytes_view payload, uint64_t now_s) {
  return append({kind, next_epoch(kind), {payload.begin(), payload.end()}}, now_s);
}

result<void> willing_log::add(roster nodes, uint64_t now_s) {
  nodes.epoch = next_epoch(log_kind::roster);
  nodes.sort();
  if (auto ok = append(nodes.summary(now_s).to_entry(nodes.epoch), now_s); !ok) return ok;
  rosters_[nodes.epoch] = std::move(nodes);
  return {};
}

result<void> willing_log::append(const log_entry& entry, uint64_t now_s) {
  auto head = log_.append({&entry, 1});
  return head ? cosign(now_s) : head.why();
}

result<void> willing_log::cosign(uint64_t now_s) {
  signed_head head = log_.head();
  head.signatures.push_back(cosign_head(witness_, head.head, now_s));
  return log_.publish(head);
}

result<std::vector<std::byte>> willing_log::look(std::string_view path) const {
  if (!path.starts_with(roster_prefix)) return log_.fetch(path);
  for (const auto& [epoch, nodes] : rosters_)
    if (path.substr(roster_prefix.size()) == std::to_string(epoch)) return nodes.to_bytes();
  return fail("audit: no such roster");
}

}  // namespace lethe::audit
