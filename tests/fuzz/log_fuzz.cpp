#include <cstddef>
#include <cstdint>

#include "runtime/log/be_fields.hpp"
#include "runtime/log/log_policy.hpp"
#include "runtime/log/log_reader.hpp"
#include "runtime/log/roster.hpp"
#include "runtime/log/witness.hpp"

namespace {

using namespace lethe;

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

bool same(bytes_view a, bytes_view b) { return as_text(a) == as_text(b); }

/// Notes have one form: what is read is written the same again.
void any_note(bytes_view b) {
  if (auto note = signed_head::parse(as_text(b))) expect(note->text() == as_text(b));
  if (auto ask = witness_ask::parse(as_text(b))) expect(ask->text() == as_text(b));
  if (auto key = note_key::parse(as_text(b))) expect(key->text() == as_text(b));
  if (auto path = tile_path::parse(as_text(b))) expect(path->text() == as_text(b));
  if (auto memory = log_memory::from_bytes(b)) expect(same(memory->to_bytes(), b));
}

void any_roster(bytes_view b) {
  auto r = roster::from_bytes(b);
  if (!r) return;
  expect(same(r->to_bytes(), b));
  const log_entry logged = r->summary(1).to_entry(r->epoch);
  expect(roster_summary::from_entry(logged)->root == r->root());
  // Nobody's signature is found by chance.
  expect(r->leaves.empty() == bool(verify_roster(b, logged)));
}

/// A bundle of as many entries as its first byte says, and a log that serves it.
void any_bundle(bytes_view b) {
  if (b.empty()) return;
  const size_t count = uint8_t(b[0]);
  auto entries = split_bundle(b.subspan(1), count);
  if (!entries) return;
  size_t bytes = 0;
  for (bytes_view e : *entries) {
    bytes += 2 + e.size();
    if (auto entry = log_entry::from_bytes(e)) expect(same(entry->to_bytes(), e));
  }
  expect(bytes == b.size() - 1);
}

/// A policy that is read can be written, and is then read as the same.
void any_policy(bytes_view b) {
  auto policy = log_policy::parse(as_text(b));
  if (!policy) return;
  auto again = log_policy::parse(policy->text());
  expect(again && *again == *policy);
}

/// Proofs of any bytes for sizes of any bytes prove nothing but that equals are equal.
void any_proof(bytes_view b) {
  if (b.size() < 3) return;
  const uint64_t size = uint64_t(uint8_t(b[0])) << (uint8_t(b[2]) % 56);
  const uint64_t index = uint64_t(uint8_t(b[1])) << (uint8_t(b[2]) % 56);
  merkle_proof proof;
  for (bytes_view left = b.subspan(3); left.size() >= 32; left = left.subspan(32))
    std::copy_n(left.begin(), 32, proof.emplace_back().begin());
  const hash32 one = leaf_hash(b.first(1)), two = leaf_hash(b.first(2));
  expect(!verify_inclusion(one, index, size, proof, two));
  expect(!verify_consistency(index, size, proof, one, two));
  expect(!verify_consistency(index, size, proof, one, one) || (index == size && proof.empty()));
}

/// A proof with what it proves: if it holds, it holds for nothing else, and no part of it does.
void whole_proof(bytes_view b) {
  field_reader in(b);
  const bool grows = in.number<uint8_t>() % 2;
  const auto first = in.number<uint64_t>(), size = in.number<uint64_t>();
  hash32 one{}, two{};
  for (hash32* h : {&one, &two})
    if (bytes_view at = in.bytes(h->size()); in.good()) std::ranges::copy(at, h->begin());
  if (!in.good()) return;
  merkle_proof proof;
  for (bytes_view left = in.rest(); left.size() >= 32; left = left.subspan(32))
    std::copy_n(left.begin(), 32, proof.emplace_back().begin());
  const auto holds = [&](uint64_t n, const hash32& h, std::span<const hash32> p) {
    return grows ? verify_consistency(first, n, p, one, h) : verify_inclusion(one, first, n, p, h);
  };
  if (!holds(size, two, proof)) return;
  expect(grows ? first <= size : first < size);
  hash32 other = two;
  other[9] ^= std::byte{1};
  expect(!holds(size, other, proof));
  expect(proof.empty() || !holds(size, two, std::span(proof).first(proof.size() - 1)));
  proof.push_back(two);
  expect(!holds(size, two, proof));
}

}  // namespace

/// What a log, its mirrors and its witnesses say.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bytes_view rest(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      any_note(rest);
      break;
    case 1:
      any_roster(rest);
      break;
    case 2:
      any_bundle(rest);
      break;
    case 3:
      any_policy(rest);
      break;
    case 4:
      any_proof(rest);
      break;
    case 5:
      whole_proof(rest);
  }
  return 0;
}
