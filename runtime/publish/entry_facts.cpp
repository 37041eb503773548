#include "runtime/publish/entry_facts.hpp"

#include <fmt/chrono.h>

#include "runtime/base/hex.hpp"
#include "runtime/crypto/ohttp_config.hpp"
#include "runtime/log/log_policy.hpp"
#include "runtime/log/roster_summary.hpp"
#include "runtime/token/token_directory.hpp"

namespace lethe {

namespace {

using facts = std::vector<entry_fact>;

facts of_release(bytes_view digest) { return {{"program", to_hex(digest)}}; }

result<facts> of_roster(const log_entry& entry) {
  auto r = roster_summary::from_entry(entry);
  if (!r) return r.why();
  return facts{{"nodes", uint64_t{r->nodes}},
               {"capacity", r->capacity},
               {"from", utc_text(r->not_before)},
               {"root", to_hex(r->root)}};
}

result<facts> of_gateway_keys(bytes_view payload) {
  auto keys = read_ohttp_keys(payload);
  if (!keys) return keys.why();
  facts all;
  for (const auto& k : *keys)
    all.push_back({fmt::format("key {}", k.key_id), to_hex(sha256({k.to_bytes()}))});
  return all;
}

std::string key_text(const published_key& k) {
  auto text = to_hex(sha256({k.key}));
  if (k.not_before_s) text += " from " + utc_text(*k.not_before_s);
  if (k.buyers == 0) return text + ", bought by fewer than ten accounts";
  return k.buyers ? fmt::format("{}, bought by {} accounts or more", text, *k.buyers) : text;
}

result<facts> of_issuer_keys(bytes_view payload) {
  auto directory = read_directory(as_text(payload));
  if (!directory) return directory.why();
  facts all;
  for (const auto& k : directory->keys)
    all.push_back({fmt::format("key {}", all.size() + 1), key_text(k)});
  return all;
}

result<facts> of_policy(const log_entry& entry) {
  auto p = log_policy::from_entry(entry);
  if (!p) return p.why();
  facts all{{"name", p->name},
            {"candidates", uint64_t{p->candidates}},
            {"redraws", uint64_t{p->redraws}},
            {"nodes at least", uint64_t{p->nodes_min}},
            {"buyers at least", uint64_t{p->buyers_min}},
            {"evidence", fmt::format("{}", fmt::join(p->evidence_kinds, " "))}};
  for (const auto& [name, capacity] : p->classes)
    all.push_back({"class " + name, uint64_t{capacity}});
  return all;
}

}  // namespace

std::string utc_text(uint64_t unix_s) {
  constexpr uint64_t year_9999 = 253'402'300'799;
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(std::time_t(std::min(unix_s, year_9999))));
}

result<std::vector<entry_fact>> facts_of(const log_entry& entry) {
  switch (entry.kind) {
    case log_kind::release:
      return of_release(entry.payload);
    case log_kind::roster:
      return of_roster(entry);
    case log_kind::ohttp_keys:
      return of_gateway_keys(entry.payload);
    case log_kind::issuer_keys:
      return of_issuer_keys(entry.payload);
    case log_kind::policy:
      return of_policy(entry);
  }
  return fail("log entry: kind {} is unknown", uint8_t(entry.kind));
}

std::string text_of(const std::vector<entry_fact>& facts) {
  std::string out;
  for (const auto& [name, value] : facts) {
    out += fmt::format("{}{} ", out.empty() ? "" : ", ", name);
    std::visit([&](const auto& v) { out += fmt::format("{}", v); }, value);
  }
  return out;
}

}  // namespace lethe
