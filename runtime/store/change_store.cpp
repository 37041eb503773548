#include "runtime/store/change_store.hpp"

#include <algorithm>

namespace lethe {
namespace {

constexpr store_kind changes_kind{
    .name = "a store of changed tokens",
    .application_id = 0x6c656368,  // "lech"
    .schema =
        "CREATE TABLE changed(key_id BLOB NOT NULL, nonce BLOB NOT NULL,"
        " change_digest BLOB NOT NULL, PRIMARY KEY(key_id, nonce)) WITHOUT ROWID"};

}  // namespace

result<std::unique_ptr<change_store>> change_store::open(const store_place& place) {
  auto file = sqlite_file::open(place, changes_kind);
  if (!file) return file.why();
  return std::unique_ptr<change_store>(new change_store(*std::move(file)));
}

result<change_record> change_store::record(const token_id& token, const hash32& change_digest) {
  std::lock_guard lock(mutex_);
  auto added =
      file_.change("INSERT OR IGNORE INTO changed(key_id, nonce, change_digest) VALUES(?1, ?2, ?3)",
                   bytes_view(token.key_id), bytes_view(token.nonce), bytes_view(change_digest));
  if (!added) return added.why();
  if (*added == 1) return change_record::fresh;
  return compare(token, change_digest);
}

result<change_record> change_store::compare(const token_id& token, const hash32& change_digest) {
  auto row = file_.ask("SELECT change_digest FROM changed WHERE key_id=?1 AND nonce=?2",
                       bytes_view(token.key_id), bytes_view(token.nonce));
  if (!row) return row.why();
  if (!row->has_row()) return fail("a changed token's row is damaged");
  return std::ranges::equal(row->blob(0), change_digest) ? change_record::same_again
                                                         : change_record::refused;
}

result<bool> change_store::drop_some(const hash32& key_id) {
  std::lock_guard lock(mutex_);
  return file_.change_slice(
      "DELETE FROM changed WHERE key_id=?1 AND nonce IN"
      " (SELECT nonce FROM changed WHERE key_id=?1 LIMIT ?2)",
      key_id);
}

result<void> change_store::drop_key(const hash32& key_id) {
  for (;;) {
    auto more = drop_some(key_id);
    if (!more) return more.why();
    if (!*more) return {};
  }
}

result<uint64_t> change_store::count(const hash32& key_id) {
  std::lock_guard lock(mutex_);
  auto row = file_.ask("SELECT count(*) FROM changed WHERE key_id=?1", bytes_view(key_id));
  if (!row) return row.why();
  return uint64_t(row->number(0));
}

}  // namespace lethe
