#include "runtime/store/spend_ledger.hpp"

namespace lethe {
namespace {

/// Without row numbers, which would tell the order of the spends.
constexpr store_kind spends_kind{.name = "a store of spent tokens",
                                 .application_id = 0x6c657370,  // "lesp"
                                 .schema =
                                     "CREATE TABLE spent(key_id BLOB NOT NULL, nonce BLOB NOT NULL,"
                                     " change_digest BLOB NOT NULL, outcome INTEGER,"  // NULL: open
                                     " PRIMARY KEY(key_id, nonce)) WITHOUT ROWID"};

class sqlite_spends final : public spend_ledger {
 public:
  explicit sqlite_spends(sqlite_file file) : file_(std::move(file)) {}

  result<void> close_open() {
    auto closed = file_.change("UPDATE spent SET outcome=?1 WHERE outcome IS NULL",
                               int64_t(outcome::node_failed));
    if (!closed) return closed.why();
    return {};
  }

  result<void> commit(std::span<spend_entry> spends, std::span<const settlement> settles) override {
    return file_.transaction([this, spends, settles]() -> result<void> {
      for (const settlement& s : settles)
        if (auto ok = settle(s); !ok) return ok;
      for (spend_entry& s : spends)
        if (auto ok = spend(s); !ok) return ok;
      return {};
    });
  }

  result<change_state> state(const token_id& token) override {
    auto row = file_.ask("SELECT change_digest, outcome FROM spent WHERE key_id=?1 AND nonce=?2",
                         bytes_view(token.key_id), bytes_view(token.nonce));
    if (!row) return row.why();
    if (!row->has_row()) return change_state{};
    if (row->null(1)) return change_state{change_state::what::open};
    if (row->number(1) == int64_t(outcome::delivered))
      return change_state{change_state::what::delivered};
    change_state due{change_state::what::due};
    const bytes_view digest = row->blob(0);
    if (digest.size() != due.change_digest.size()) return fail("a spent token's row is damaged");
    std::copy(digest.begin(), digest.end(), due.change_digest.begin());
    return due;
  }

  result<uint64_t> count(const hash32& key_id) override {
    auto row = file_.ask("SELECT count(*) FROM spent WHERE key_id=?1", bytes_view(key_id));
    if (!row) return row.why();
    return uint64_t(row->number(0));
  }

  result<bool> drop_some(const hash32& key_id) override {
    return file_.change_slice(
        "DELETE FROM spent WHERE key_id=?1 AND nonce IN"
        " (SELECT nonce FROM spent WHERE key_id=?1 LIMIT ?2)",
        key_id);
  }

 private:
  result<void> spend(spend_entry& s) {
    auto added = file_.change(
        "INSERT OR IGNORE INTO spent(key_id, nonce, change_digest) VALUES(?1, ?2, ?3)",
        bytes_view(s.token.key_id), bytes_view(s.token.nonce), bytes_view(s.change_digest));
    if (!added) return added.why();
    s.fresh = *added == 1;
    return {};
  }
  result<void> settle(const settlement& s) {
    auto set =
        file_.change("UPDATE spent SET outcome=?3 WHERE key_id=?1 AND nonce=?2 AND outcome IS NULL",
                     bytes_view(s.token.key_id), bytes_view(s.token.nonce), int64_t(s.is));
    if (!set) return set.why();
    return {};
  }

  sqlite_file file_;
};

}  // namespace

result<std::unique_ptr<spend_ledger>> open_sqlite_spends(const store_place& place) {
  auto file = sqlite_file::open(place, spends_kind);
  if (!file) return file.why();
  auto spends = std::make_unique<sqlite_spends>(*std::move(file));
  if (auto ok = spends->close_open(); !ok) return ok.why();
  return std::unique_ptr<spend_ledger>(std::move(spends));
}

}  // namespace lethe
