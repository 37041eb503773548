#include "runtime/log/log_policy.hpp"

#include <algorithm>

#include "runtime/base/base64.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/json/json_slice.hpp"
#include "runtime/json/json_text.hpp"
#include "runtime/log/roster.hpp"
#include "runtime/log/words.hpp"

namespace lethe {

namespace {

struct number_field {
  const char* key;
  uint32_t log_policy::*to;
  uint32_t least, most;
};

constexpr uint32_t any_max = 1'000'000'000;

constexpr number_field numbers[] = {
    {"candidates", &log_policy::candidates, 1, limits::seal_nodes_max},
    {"redraws", &log_policy::redraws, 0, 16},
    {"chunk_bytes", &log_policy::chunk_bytes, 0, answer_shape::chunk_bytes_most},
    {"tick_ms", &log_policy::tick_ms, 0, 60'000},
    {"nodes_min", &log_policy::nodes_min, 1, limits::roster_nodes_max},
    {"share_max_permille", &log_policy::share_max_permille, 1, 1000},
    {"growth_max_permille", &log_policy::growth_max_permille, 0, any_max},
    {"roster_age_max_s", &log_policy::roster_age_max_s, 1, any_max},
    {"token_batch", &log_policy::token_batch, 1, 10'000},
    {"buyers_min", &log_policy::buyers_min, 0, any_max},
};

struct other_field {
  const char* key;
  result<void> (*read)(log_policy& into, json_slice value);
  void (*write)(const log_policy& from, json_text& out);
};

error wrong(const char* key, std::string_view right) {
  return fail("policy: {} must be {}", key, right);
}

std::optional<std::string> text_of(json_slice v, size_t bytes_max) {
  if (v.raw().size() > 6 * bytes_max + 2) return {};
  auto text = v.text(std::pmr::get_default_resource());
  if (!text || text->size() > bytes_max) return {};
  return std::string(*text);
}

std::optional<std::string> word_of(json_slice v) {
  auto word = text_of(v, limits::roster_word_bytes_max);
  return word && is_word(*word) ? word : std::nullopt;
}

std::optional<uint32_t> whole_of(json_slice v, uint32_t least, uint32_t most) {
  auto whole = v.whole();
  if (!whole || *whole < least || *whole > most) return {};
  return uint32_t(*whole);
}

bool is_short_list(json_slice v, json_kind kind) {
  return v.is(kind) && v.count() >= 1 && v.count() <= limits::policy_list_max;
}

result<void> read_name(log_policy& p, json_slice v) {
  auto name = word_of(v);
  if (!name) return wrong("name", word_form);
  p.name = *std::move(name);
  return {};
}

result<void> read_buckets(log_policy& p, json_slice v) {
  auto take = [&p](json_slice item) {
    auto bytes = whole_of(item, 1, limits::sealed_plain_bytes_max);
    if (!bytes || (!p.request_buckets.empty() && p.request_buckets.back() >= *bytes)) return false;
    p.request_buckets.push_back(*bytes);
    return true;
  };
  if (!is_short_list(v, json_kind::list) || !v.each(take))
    return wrong("request_buckets", "a list of 1 to 64 sizes that rise");
  return {};
}

result<void> read_evidence(log_policy& p, json_slice v) {
  auto take = [&p](json_slice item) {
    auto kind = word_of(item);
    if (!kind || std::ranges::find(p.evidence_kinds, *kind) != p.evidence_kinds.end()) return false;
    p.evidence_kinds.push_back(*std::move(kind));
    return true;
  };
  if (!is_short_list(v, json_kind::list) || !v.each(take))
    return wrong("evidence_kinds", "a list of 1 to 64 names, each once");
  return {};
}

result<void> read_classes(log_policy& p, json_slice v) {
  auto take = [&p](json_slice key, json_slice value) {
    auto name = word_of(key);
    auto capacity = whole_of(value, 1, any_max);
    return name && capacity && p.classes.emplace(*std::move(name), *capacity).second;
  };
  if (!is_short_list(v, json_kind::object) || !v.each(take))
    return wrong("classes", "an object of 1 to 64 names, each once, with capacities");
  return {};
}

result<void> read_challenge(log_policy& p, json_slice v) {
  auto text = text_of(v, base64_chars(limits::policy_challenge_bytes_max));
  auto bytes = text ? from_base64(*text) : std::nullopt;
  if (!bytes || bytes->size() > limits::policy_challenge_bytes_max)
    return wrong("token_challenge", "base64 of at most 1024 bytes");
  p.token_challenge = *std::move(bytes);
  return {};
}

void write_buckets(const log_policy& p, json_text& out) { out.ids(p.request_buckets); }

void write_evidence(const log_policy& p, json_text& out) {
  out.open('[');
  for (const std::string& kind : p.evidence_kinds) out.text(kind);
  out.close(']');
}

void write_classes(const log_policy& p, json_text& out) {
  out.open('{');
  for (const auto& [name, capacity] : p.classes) out.key(name).number(uint64_t{capacity});
  out.close('}');
}

constexpr other_field others[] = {
    {"name", read_name, [](const log_policy& p, json_text& out) { out.text(p.name); }},
    {"request_buckets", read_buckets, write_buckets},
    {"evidence_kinds", read_evidence, write_evidence},
    {"classes", read_classes, write_classes},
    {"token_challenge", read_challenge,
     [](const log_policy& p, json_text& out) { out.text(to_base64(p.token_challenge)); }},
};

constexpr size_t keys = std::size(numbers) + std::size(others);

/// Reads one member and gives its number among all keys.
result<size_t> read_member(log_policy& p, json_slice key, json_slice value) {
  size_t n = 0;
  for (const number_field& field : numbers) {
    if (key.says(field.key)) {
      auto whole = whole_of(value, field.least, field.most);
      if (!whole) return fail("policy: {} must be {} to {}", field.key, field.least, field.most);
      p.*field.to = *whole;
      return n;
    }
    ++n;
  }
  for (const other_field& field : others) {
    if (key.says(field.key)) {
      auto ok = field.read(p, value);
      return ok ? result(n) : ok.why();
    }
    ++n;
  }
  return fail("policy: it has a key that this release does not know");
}

const char* key_name(size_t n) {
  return n < std::size(numbers) ? numbers[n].key : others[n - std::size(numbers)].key;
}

}  // namespace

std::string log_policy::text() const {
  json_text out(std::pmr::get_default_resource());
  out.open('{');
  for (const number_field& field : numbers) out.key(field.key).number(uint64_t{this->*field.to});
  for (const other_field& field : others) field.write(*this, out.key(field.key));
  out.close('}');
  return std::string(out.str());
}

result<log_policy> log_policy::parse(std::string_view text) {
  if (text.size() > limits::policy_bytes_max)
    return fail("policy: {} bytes; at most {} are read", text.size(), limits::policy_bytes_max);
  auto json = check_json(text);
  if (!json) return fail("policy: {}", json.why().text);
  if (!json->is(json_kind::object)) return fail("policy: not a JSON object");
  log_policy p;
  std::array<bool, keys> seen{};
  std::optional<error> why;
  json->each([&](json_slice key, json_slice value) {
    auto n = read_member(p, key, value);
    if (!n)
      why = n.why();
    else if (std::exchange(seen[*n], true))
      why = fail("policy: {} is there twice", key_name(*n));
    return !why;
  });
  for (size_t n = 0; n < keys && !why; ++n)
    if (!seen[n]) why = fail("policy: {} is missing", key_name(n));
  if (!why && !p.shape().valid())
    why = fail("policy: chunk_bytes must be {} or more, or 0 like tick_ms: answers as they come",
               answer_shape::chunk_bytes_least);
  if (why) return *why;
  return p;
}

log_entry log_policy::to_entry(uint32_t epoch) const {
  const std::string json = text();
  bytes_view bytes = as_bytes(json);
  return {log_kind::policy, epoch, {bytes.begin(), bytes.end()}};
}

result<log_policy> log_policy::from_entry(const log_entry& entry) {
  if (entry.kind != log_kind::policy)
    return fail("policy: a log entry of kind {}", name_of(entry.kind));
  return parse(as_text(entry.payload));
}

bool log_policy::attested() const {
  return std::ranges::find(evidence_kinds, no_evidence) == evidence_kinds.end();
}

}  // namespace lethe
