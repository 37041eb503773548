#include <bit>

#include "runtime/base/base64.hpp"
#include "runtime/log/be_fields.hpp"
#include "runtime/log/log_reader.hpp"

namespace lethe {

namespace {

constexpr uint8_t version = 1;

std::string proof_text(const char* name, const merkle_proof& proof) {
  std::string out;
  for (const hash32& hash : proof) out += fmt::format("{} {}\n", name, to_base64(hash));
  return out;
}

}  // namespace

const indexed_entry* log_memory::of(log_kind kind) const {
  for (const indexed_entry& e : newest)
    if (e.entry.kind == kind) return &e;
  return nullptr;
}

std::vector<std::byte> log_memory::to_bytes() const {
  std::vector<std::byte> out{std::byte(version)};
  append_sized(out, as_bytes(note.text()));
  for (const hash32& hash : tree.subtrees()) append(out, hash);
  append_be(out, uint8_t(newest.size()));
  for (const indexed_entry& e : newest) {
    append_be(out, e.index);
    append_sized(out, e.entry.to_bytes());
  }
  return out;
}

result<log_memory> log_memory::from_bytes(bytes_view bytes) {
  field_reader in(bytes);
  if (in.number<uint8_t>() != version) return fail("log memory: not of this release");
  auto note = signed_head::parse(as_text(in.sized()));
  if (!note) return fail("log memory: {}", note.why().text);
  std::vector<hash32> subtrees(size_t(std::popcount(note->head.size)));
  for (hash32& hash : subtrees)
    if (bytes_view b = in.bytes(hash.size()); in.good())
      std::memcpy(hash.data(), b.data(), hash.size());
  log_memory m{.note = *std::move(note)};
  m.tree = *merkle_frontier::from(m.note.head.size, std::move(subtrees));
  for (auto count = in.number<uint8_t>(); count > 0 && in.good(); --count) {
    const auto index = in.number<uint64_t>();
    auto entry = log_entry::from_bytes(in.sized());
    if (!entry || index >= m.note.head.size || m.of(entry->kind))
      return fail("log memory: a damaged entry");
    m.newest.push_back({index, *std::move(entry)});
  }
  if (!in.done() || m.tree.root() != m.note.head.root) return fail("log memory: damaged");
  return m;
}

std::string log_evidence::text() const {
  std::string out = what + "\n\n";
  if (!earlier.signatures.empty()) out += earlier.text() + '\n';
  out += later.text() + '\n';
  if (!consistency.empty()) out += proof_text("continued", {continued});
  out += proof_text("consistency", consistency);
  for (const witnessed_entry& e : entries)
    out += fmt::format("entry {} {}\n{}", e.index, to_base64(e.bytes),
                       proof_text("inclusion", e.inclusion));
  return out;
}

}  // namespace lethe
