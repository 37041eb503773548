#pragma once

#include <unistd.h>

#include <fstream>
#include <map>

#include "runtime/log/log_file.hpp"
#include "runtime/log/log_policy.hpp"
#include "runtime/log/roster.hpp"
#include "runtime/log/witness.hpp"
#include "tests/unit/crypto_samples.hpp"

/// Keys, logs and rosters as tests have them.
namespace lethe::test {

namespace fs = std::filesystem;

inline constexpr uint64_t t0 = 1'800'000'000;

/// A folder of its own, gone with the object.
class scratch {
 public:
  scratch() {
    std::string name = (fs::temp_directory_path() / "lethe-log-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline bytes file_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  return text_bytes(text);
}

inline void put_file(const fs::path& path, bytes_view b) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(b.data()), long(b.size()));
}

inline note_signer signer(const char* name, note_algorithm algorithm, uint32_t seed) {
  return *note_signer::make(name, algorithm, random_bytes(32, seed));
}
inline note_signer log_signer() { return signer("log.test/1", note_algorithm::ed25519, 1); }
inline note_signer witness_signer(uint32_t n) {
  return signer(("witness-" + std::to_string(n)).c_str(), note_algorithm::cosignature, 100 + n);
}
/// So many witnesses are known, so many must sign.
inline note_trust trust(uint32_t witnesses, uint32_t quorum) {
  std::vector<note_key> keys;
  for (uint32_t n = 0; n < witnesses; ++n) keys.push_back(witness_signer(n).key());
  return *note_trust::make(log_signer().key(), keys, quorum);
}

inline log_entry sample(log_kind kind, uint32_t epoch, std::string_view payload = "payload") {
  return {kind, epoch, text_bytes(payload)};
}
inline log_entry roster_sample(uint32_t epoch, uint64_t not_before) {
  return roster_summary{not_before, sha256({as_bytes("r")}), 3, 300}.to_entry(epoch);
}

/// A log in memory that will sign anything, as a bad operator would.
struct free_log {
  std::vector<bytes> entries;
  std::map<std::string, bytes, std::less<>> spoiled;  // served in place of the right bytes

  merkle_tree tree() const {
    merkle_tree t;
    for (const bytes& e : entries) t.append(leaf_hash(e));
    return t;
  }
  tree_head head() const { return {"log.test/1", entries.size(), tree().root()}; }
  /// By the log and the first `witnesses`, at that time.
  signed_head note(uint32_t witnesses, uint64_t time_s) const {
    signed_head n{head(), {sign_head(log_signer(), head())}};
    for (uint32_t w = 0; w < witnesses; ++w)
      n.signatures.push_back(cosign_head(witness_signer(w), n.head, time_s));
    return n;
  }
  void add(const log_entry& e) { entries.push_back(e.to_bytes()); }
  log_fetch serve(const signed_head& note) const {
    return [*this, text = note.text()](std::string_view path) -> result<bytes> {
      if (auto at = spoiled.find(path); at != spoiled.end()) return at->second;
      if (path == "checkpoint") return text_bytes(text);
      auto tile = tile_path::parse(path);
      if (!tile) return tile.why();
      const merkle_tree t = tree();
      bytes out;
      for (uint64_t i = tile->index * tile_width; i < tile->index * tile_width + tile->width; ++i)
        if (tile->entries) {
          out.push_back(std::byte(uint8_t(entries.at(i).size() >> 8)));
          out.push_back(std::byte(uint8_t(entries.at(i).size())));
          out.insert(out.end(), entries[i].begin(), entries[i].end());
        } else {
          const hash32& h = t.level(tile->level * tile_levels).at(i);
          out.insert(out.end(), h.begin(), h.end());
        }
      return out;
    };
  }
};

inline signing_key identity(uint32_t n) {
  return *signing_key::from_private(random_bytes(32, 500 + n));
}

inline roster_leaf leaf(uint32_t n, uint32_t capacity, uint32_t who) {
  roster_leaf l;
  l.node.suite = {};
  l.node.pk = random_bytes(32, 1000 + n);
  const auto sigpk = random_bytes(32, 2000 + n);
  std::ranges::copy(sigpk, l.node.sigpk.begin());
  l.node.id = node_key_id(l.node.suite, l.node.pk, l.node.sigpk);
  l.model_class = "ember-nano/cpu";
  l.capacity = capacity;
  l.not_before = t0 - 60;
  l.not_after = t0 + 1800;
  l.sign(identity(who));
  return l;
}

inline roster three_nodes() {
  roster r{.epoch = 7, .leaves = {leaf(0, 100, 0), leaf(1, 200, 1), leaf(2, 50, 2)}};
  r.sort();
  return r;
}

inline log_policy sample_policy() {
  log_policy p;
  p.name = "embedded";
  p.request_buckets = {1024, 4096, 16384};
  p.chunk_bytes = 512;
  p.tick_ms = 50;
  p.share_max_permille = 600;
  p.growth_max_permille = 500;
  p.evidence_kinds = {"none", "tpm2"};
  p.classes = {{"ember-nano/cpu", 100}, {"ember/gpu", 4000}};
  p.token_challenge = random_bytes(70, 9);
  p.token_batch = 32;
  p.buyers_min = 20;
  return p;
}

/// That a refusal's text begins so.
template <class T>
::testing::AssertionResult refused(const result<T>& r, std::string_view begin) {
  if (r) return ::testing::AssertionFailure() << "was not refused";
  if (!r.why().text.starts_with(begin)) return ::testing::AssertionFailure() << r.why().text;
  return ::testing::AssertionSuccess();
}

}  // namespace lethe::test
