#include "actors/audit/no_keys.hpp"

#include <fmt/format.h>

#include <fstream>
#include <set>

#include "runtime/crypto/key_bytes.hpp"

namespace lethe::audit {

namespace {

constexpr size_t key_bytes_min = 16;
/// What a defence would have wiped is soon written over by something else, now and then.
constexpr int control_calls_max = 12;

/// Sixteen bytes of a block that are no text, no zeroes and no counters.
bool looks_random(std::string_view bytes) {
  const std::set<char> different(bytes.begin(), bytes.end());
  return bytes.size() >= key_bytes_min && different.size() >= 11;
}

/// What a client told: blocks of at most 256 bytes, each after its length.
std::set<std::string> keys_in(const std::filesystem::path& told) {
  std::ifstream file(told, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> keys;
  for (size_t at = 0; at + 2 <= all.size();) {
    const size_t size = uint8_t(all[at]) | size_t(uint8_t(all[at + 1])) << 8;
    const auto block = std::string_view(all).substr(at + 2, size);
    // As key_bytes are wiped; tokens and texts, which others may know, have other sizes.
    for (size_t from = 0; size == key_bytes::size_max && from + key_bytes_min <= block.size();
         from += key_bytes_min)
      if (auto part = block.substr(from, key_bytes_min); looks_random(part))
        keys.insert(std::string(part));
    at += 2 + size;
  }
  return keys;
}

struct looked_for {
  size_t keys = 0;
  std::vector<trace_of> left;
};

/// What a client tells that asks once.
result<std::set<std::string>> told_by_a_call(const embedded_cluster& on,
                                             const std::string& teller) {
  const auto told = on.folder() / "told";
  auto said = run_child({teller, "fetch", on.trust(), "--prompt", "What is the sum of 2 and 3?"},
                        (on.folder() / "run").string(), {"LETHE_TOLD=" + told.string()});
  if (!said) return said.why();
  auto keys = keys_in(told);
  std::filesystem::remove(told);
  return keys;
}

/// One call, and a search for what only it told: keys are drawn anew for each; constants, and what
/// everybody may know, come again.
result<looked_for> one_call(const embedded_cluster& on, const std::string& teller,
                            std::set<std::string>& known) {
  auto keys = told_by_a_call(on, teller);
  if (!keys) return keys.why();
  std::vector<needle> fresh;
  for (const auto& key : *keys)
    if (known.insert(key).second) fresh.push_back({"16 bytes of a key", key});
  if (fresh.size() < 8) return fail("the client told {} keys", fresh.size());
  const needle_finder finder(std::move(fresh));
  const auto found = on.search(finder, {on.folder() / "gateway", on.folder() / "issuer"});
  return looked_for{finder.count(), found.traces()};
}

/// So many calls to a cluster of `program`, or until one leaves a key.
result<looked_for> calls(const no_trace_settings& s, const std::string& program, int most) {
  auto settings = s.cluster;
  settings.program = program;
  auto on = embedded_cluster::start(settings);
  if (!on) return on.why();
  (*on)->alone();
  const auto teller = (s.controls / "lethe_tells_keys").string();
  auto known = told_by_a_call(**on, teller);
  if (!known) return known.why();
  looked_for all;
  for (int i = 0; i < most && all.left.empty(); ++i) {
    auto one = one_call(**on, teller, *known);
    if (!one) return one.why();
    all.keys += one->keys;
    all.left.insert(all.left.end(), one->left.begin(), one->left.end());
  }
  return all;
}

std::string text_of(const looked_for& l) {
  return fmt::format("{} traces of {} keys{}", l.left.size(), l.keys,
                     l.left.empty() ? "" : ", the first in " + l.left[0].place);
}

}  // namespace

result<finding> measure_no_keys(const no_trace_settings& s) {
  s.progress("looking for the keys of an answer");
  auto found = calls(s, s.cluster.program, s.brief ? 1 : 2);
  if (!found) return found.why();
  finding f{.promise = "S",
            .attacks = "A2",
            .what = "no key that opens a recording, once the answer is there",
            .measured = text_of(*found),
            .bound = "0 traces",
            .said = found->left.empty() ? verdict::held : verdict::broken,
            .note = "Keys are what the client wipes: both ends derive the same ones."};
  s.progress("the same without wiping");
  control c{.without = "wiping"};
  auto left = calls(s, (s.controls / "lethe_wipes_nothing").string(), control_calls_max);
  c.measured = left ? text_of(*left) : "not run: " + left.why().text;
  c.found = left && !left->left.empty();
  f.controls.push_back(std::move(c));
  return f;
}

}  // namespace lethe::audit
