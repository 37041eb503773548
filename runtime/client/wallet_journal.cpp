#include "runtime/client/wallet_journal.hpp"

#include <algorithm>

#include "runtime/client/client_limits.hpp"
#include "runtime/client/wallet_fields.hpp"
#include "runtime/crypto/aead.hpp"
#include "runtime/crypto/random.hpp"

namespace lethe {

namespace {

constexpr std::string_view magic = "lethe wallet journal 1\n";
constexpr size_t page_bytes = 4096;
constexpr size_t arrival_page = 2, first_page = 3;
constexpr size_t pages_max = limits::wallet_journal_bytes / page_bytes;
constexpr size_t head_bytes = 8 + 8 + 4 + aead_nonce_bytes;
constexpr size_t frame_bytes = head_bytes + aead_tag_bytes;
using aad_bytes = std::array<std::byte, magic.size() + head_bytes>;

constexpr size_t pages_for(size_t changes_bytes) {
  return (frame_bytes + changes_bytes + page_bytes - 1) / page_bytes;
}

aad_bytes aad_of(bytes_view head) {
  aad_bytes aad;
  std::ranges::copy(head, std::ranges::copy(as_bytes(magic), aad.begin()).out);
  return aad;
}

}  // namespace

/// A record that was sealed with the wallet's key, wherever it stands.
struct wallet_journal::piece {
  size_t page;
  uint64_t base, number;
  secret_bytes changes;
};

std::vector<wallet_journal::piece> wallet_journal::pieces_of(bytes_view journal) const {
  std::vector<piece> found;
  auto cipher = aead::opening(aead_id::aes_256_gcm, key_.view());
  for (size_t page = 0; page < pages_max; ++page) {
    field_reader in(journal.subspan(page * page_bytes));
    const bytes_view head = in.rest().first(head_bytes);
    piece p{page, in.number<uint64_t>(), in.number<uint64_t>(), {}};
    const size_t size = in.number<uint32_t>();
    aead_nonce nonce;
    copy_into(nonce, in.bytes(nonce.size()));
    if (in.rest().size() < size + aead_tag_bytes) continue;
    p.changes = secret_bytes(size);
    if (cipher.open(nonce, aad_of(head), in.bytes(size + aead_tag_bytes), p.changes.bytes().data()))
      found.push_back(std::move(p));
  }
  return found;
}

error wallet_journal::damaged(size_t page) const {
  return fail(
      "{}.journal: damaged at page {}: tokens may have been shown of which it knows no more, and "
      "whoever shows one again is known. Remove it and {}, and buy new ones",
      name_, page, name_);
}

error wallet_journal::older(const char* what, const std::string& name) const {
  return fail(
      "{}: an older copy of this {}, or of another one's; its tokens may have been shown since, "
      "and whoever shows one again is known. Bring the newest {} and {}.journal back, or remove "
      "both and buy new ones",
      name, what, name_, name_);
}

/// What the first pages say: the last file that was announced, and whether this one has come.
result<wallet_journal::files_said> wallet_journal::files_in(
    const std::vector<piece>& pieces) const {
  files_said said;
  std::optional<uint64_t> newest;
  for (const piece& p : pieces) {
    if (p.page >= first_page) break;
    if (p.changes.size() > 0 || p.number != p.base) return damaged(p.page);
    if (p.page == arrival_page) {
      said.arrived = p.base;
    } else if (!newest || p.base > *newest) {
      newest = p.base;
      said.page = p.page;
    }
  }
  if (!newest || *newest < base_) return older("journal", name_ + ".journal");
  said.announced = *newest;
  if (said.arrived && *said.arrived > base_) return older("wallet", name_);
  return said;
}

/// Whether there is more than a file that has come.
result<bool> wallet_journal::follow(const std::vector<piece>& pieces, wallet_content& content) {
  base_ = content.generation;
  auto said = files_in(pieces);
  if (!said) return said.why();
  announced_ = said->page;
  size_t page = first_page;  // where the next must stand, if there is one
  for (const piece& p : pieces) {
    if (p.page < first_page || p.base < base_) continue;
    if (p.base > base_) return older("wallet", name_);
    const bool confirms = p.changes.size() == 0;
    if (p.page != page || p.number != content.generation + (confirms ? 0 : 1) || p.number == base_)
      return damaged(page);
    page = confirms ? pages_max : page + pages_for(p.changes.size());
    if (confirms) continue;
    auto changes = changes_from_bytes(p.changes.view());
    if (!changes) return damaged(p.page);
    for (const auto& c : *changes)
      if (!apply_change(c, content)) return damaged(p.page);
    content.generation = p.number;
  }
  // It was announced after the last commit: what is between is missing.
  if (said->announced > base_ && said->announced != content.generation + 1)
    return older("wallet", name_);
  return content.generation > base_ || said->announced > base_ || said->arrived != base_;
}

result<wallet_content> wallet_journal::begin(bytes_view journal) {
  const bool whole = journal.size() == limits::wallet_journal_bytes;
  const auto pieces = whole ? pieces_of(journal) : std::vector<piece>();
  const auto later = journal.subspan(std::min(page_bytes, journal.size()));
  if (std::ranges::any_of(pieces, [](const piece& p) { return p.number > 0; }) ||
      std::ranges::any_of(later, [](std::byte b) { return b != std::byte{}; }))
    return fail("{}: it is gone; bring it back, or remove {}.journal to begin with an empty one",
                name_, name_);
  const std::vector<std::byte> zeroes(limits::wallet_journal_bytes);
  if (auto ok = disk_.write_journal(0, zeroes); !ok) return ok.why();
  wallet_content empty;
  if (auto ok = replace(empty); !ok) return ok.why();
  return empty;
}

result<wallet_content> wallet_journal::read() {
  auto file = disk_.read_file();
  if (!file) return file.why();
  auto journal = disk_.read_journal();
  if (!journal) return journal.why();
  if (!*file) return begin(*journal);
  auto content = wallet_content::open(**file, key_.view());
  if (!content) return fail("{}: {}", name_, content.why().text);
  if (journal->size() != limits::wallet_journal_bytes)
    return fail(
        "{}.journal: {} bytes of {}; it says which tokens were shown: bring it back, or remove "
        "both files and buy new tokens",
        name_, journal->size(), limits::wallet_journal_bytes);
  auto more = follow(pieces_of(*journal), *content);
  if (!more) return more.why();
  if (!*more) return content;
  // What an ended process left unsynced is relied upon from here on, and by the announcement.
  if (auto ok = disk_.sync_journal(); !ok) return ok.why();
  ++content->generation;
  if (auto ok = replace(*content); !ok) return ok.why();
  return content;
}

bool wallet_journal::used() const { return page_ > first_page; }

bool wallet_journal::fits(size_t changes_bytes) const {
  return pages_for(changes_bytes) + 1 <= pages_max - page_;  // and what confirms it
}

result<void> wallet_journal::put(size_t page, uint64_t base, uint64_t number, bytes_view changes) {
  std::vector<std::byte> out(pages_for(changes.size()) * page_bytes);
  byte_writer to{out};
  to.number(base);
  to.number(number);
  to.number(uint32_t(changes.size()));
  aead_nonce nonce;
  fill_random(nonce);
  to.put(nonce);
  aead::sealing(aead_id::aes_256_gcm, key_.view())
      .seal(nonce, aad_of(bytes_view(out).first(head_bytes)), {changes}, to.left.data());
  return disk_.write_journal(page * page_bytes, out);
}

result<void> wallet_journal::append(uint64_t number, bytes_view changes) {
  check(fits(changes.size()) && !changes.empty());
  if (auto ok = put(page_, base_, number, changes); !ok) return ok;
  if (auto ok = disk_.sync_journal(); !ok) return ok;
  page_ += pages_for(changes.size());
  return put(page_, base_, number, {});
}

result<void> wallet_journal::replace(const wallet_content& content) {
  announced_ = 1 - announced_;
  if (auto ok = put(announced_, content.generation, content.generation, {}); !ok) return ok;
  if (auto ok = disk_.sync_journal(); !ok) return ok;
  if (auto ok = disk_.replace_file(content.seal(key_.view())); !ok) return ok;
  base_ = content.generation;
  page_ = first_page;
  if (auto ok = put(arrival_page, base_, base_, {}); !ok) return ok;
  return disk_.sync_journal();
}

}  // namespace lethe
