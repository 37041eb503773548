#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

struct store_place {
  std::filesystem::path file;
  const char* vfs = nullptr;  // SQLite's own
};

/// What a file is made for: another kind's file is refused.
struct store_kind {
  const char* name;        // for people
  int32_t application_id;  // in the file's head
  const char* schema;      // of an empty file
};

/// The rows of a statement, from the first on. The statement is free again when this dies.
class sqlite_rows {
 public:
  sqlite_rows(sqlite3_stmt* s, bool row) : statement_(s), row_(row) {}
  sqlite_rows(sqlite_rows&& o) noexcept
      : statement_(std::exchange(o.statement_, nullptr)), row_(o.row_) {}
  sqlite_rows& operator=(sqlite_rows&&) = delete;
  ~sqlite_rows() {
    if (statement_) sqlite3_reset(statement_);
  }

  bool has_row() const { return row_; }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  bytes_view blob(int column) const;
  std::string_view text(int column) const { return as_text(blob(column)); }

 private:
  friend class sqlite_file;
  sqlite3_stmt* statement_;
  bool row_;
};

/// A file of SQLite's whose commits outlive a power cut, open in no other process, for its owner's
/// eyes only. Used by one thread at a time. After the disk has failed or the file was found
/// damaged, nothing more is asked of it: what it holds is known again when it is opened anew.
class sqlite_file {
 public:
  static result<sqlite_file> open(const store_place& place, const store_kind& kind);

  /// `sql` is a literal: its address is what it is remembered by. Values are bound in order.
  template <class... Values>
  result<sqlite_rows> ask(const char* sql, const Values&... values) {
    auto statement = prepared(sql);
    if (!statement) return statement.why();
    int column = 0;
    (bind(*statement, ++column, values), ...);
    return first_row(*statement);
  }
  /// For statements that give no rows: how many they changed.
  template <class... Values>
  result<uint64_t> change(const char* sql, const Values&... values) {
    auto done = ask(sql, values...);
    if (!done) return done.why();
    return uint64_t(sqlite3_changes64(handle_.get()));
  }
  result<void> next(sqlite_rows& rows);
  /// All that `work` (which gives a result<void>) does, durably, or nothing.
  template <class Work>
  result<void> transaction(Work&& work) {
    if (auto begun = change("BEGIN IMMEDIATE"); !begun) return begun.why();
    result<void> done = work();
    if (done) {
      auto committed = change("COMMIT");
      if (committed) return {};
      done = committed.why();
    }
    roll_back();
    return done;
  }
  /// A transaction a slice of limits::drop_slice_rows: true if there may be more.
  result<bool> change_slice(const char* sql, bytes_view key);

 private:
  struct closer {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  struct finalizer {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  struct kept_statement {
    const char* sql;
    std::unique_ptr<sqlite3_stmt, finalizer> statement;
  };

  explicit sqlite_file(std::filesystem::path path) : path_(std::move(path)) {}
  result<void> connect(const char* vfs);
  result<void> require(const char* pragma, const char* read_back, std::string_view wanted);
  result<void> make_or_check(const store_kind& kind);
  result<void> check_whole();
  result<sqlite3_stmt*> prepared(const char* sql);
  result<sqlite_rows> first_row(sqlite3_stmt* statement);
  void roll_back();
  error why(int code);
  static void bind(sqlite3_stmt* s, int column, bytes_view value);
  static void bind(sqlite3_stmt* s, int column, std::string_view value);
  static void bind(sqlite3_stmt* s, int column, int64_t value);

  std::filesystem::path path_;
  std::unique_ptr<sqlite3, closer> handle_;
  std::vector<kept_statement> statements_;  // freed before the handle
  std::optional<error> broken_;
};

}  // namespace lethe
