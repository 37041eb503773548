#include "runtime/store/sqlite_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/durable_file.hpp"
#include "runtime/store/store_limits.hpp"

namespace lethe {
namespace {

/// SQLite would make a file that everyone may read; its journals take the file's mode. One that is
/// there is not opened: to close it again would let go of this process's locks on it.
result<void> keep_private(const std::filesystem::path& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno != EEXIST)
    return fail("{}: cannot create: {}", path.string(), std::strerror(errno));
  if (fd >= 0) ::close(fd);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail("{}: not a regular file", path.string());
  if (info.st_mode & 077)
    return fail("{}: others may read or write it; chmod 600 it", path.string());
  return sync_folder(path.parent_path());
}

}  // namespace

bytes_view sqlite_rows::blob(int column) const {
  const auto* at = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return {at, size_t(sqlite3_column_bytes(statement_, column))};
}

result<sqlite_file> sqlite_file::open(const store_place& place, const store_kind& kind) {
  sqlite_file file(place.file);
  if (auto ok = keep_private(place.file); !ok) return ok.why();
  if (auto ok = file.connect(place.vfs); !ok) return ok.why();
  if (auto ok = file.make_or_check(kind); !ok) return ok.why();
  if (auto ok = file.check_whole(); !ok) return ok.why();
  return file;
}

result<void> sqlite_file::connect(const char* vfs) {
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (vfs ? SQLITE_OPEN_CREATE : 0);
  int code = sqlite3_open_v2(path_.c_str(), &handle, flags, vfs);
  handle_.reset(handle);
  if (code != SQLITE_OK) return why(code);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // Held from the first access until the end; without shared memory, so that a copy of the folder
  // is all there is.
  if (auto ok = require("PRAGMA locking_mode=EXCLUSIVE", "PRAGMA locking_mode", "exclusive"); !ok)
    return ok;
  // A commit returns when its part of the journal is on the disk.
  if (auto ok = require("PRAGMA synchronous=FULL", "PRAGMA synchronous", "2"); !ok) return ok;
  if (auto ok = require("PRAGMA journal_mode=WAL", "PRAGMA journal_mode", "wal"); !ok) return ok;
  // What is dropped is overwritten, not only forgotten.
  return require("PRAGMA secure_delete=ON", "PRAGMA secure_delete", "1");
}

/// SQLite ignores what it does not know or cannot do, so each setting is read back.
result<void> sqlite_file::require(const char* pragma, const char* read_back,
                                  std::string_view wanted) {
  if (auto set = ask(pragma); !set) return set.why();
  auto is = ask(read_back);
  if (!is) return is.why();
  if (is->has_row() && is->text(0) == wanted) return {};
  return fail(
      "{}: {} gives \"{}\" instead of \"{}\": commits would not be durable here; use a "
      "local disk and the distribution's SQLite",
      path_.string(), read_back, is->has_row() ? is->text(0) : "", wanted);
}

result<void> sqlite_file::make_or_check(const store_kind& kind) {
  return transaction([this, &kind]() -> result<void> {
    auto id = ask("PRAGMA application_id");
    if (!id) return id.why();
    if (id->number(0) == kind.application_id) return {};
    auto tables = ask("SELECT count(*) FROM sqlite_master");
    if (!tables) return tables.why();
    if (id->number(0) != 0 || tables->number(0) != 0)
      return fail("{}: not {}; name another file", path_.string(), kind.name);
    const std::string make =
        fmt::format("{};PRAGMA application_id={}", kind.schema, kind.application_id);
    int code = sqlite3_exec(handle_.get(), make.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return why(code);
    return {};
  });
}

/// Reads the whole file: a row in the wrong place would not be found, and be written once more.
result<void> sqlite_file::check_whole() {
  auto verdict = ask("PRAGMA quick_check(1)");
  if (!verdict) return verdict.why();
  if (verdict->has_row() && verdict->text(0) == "ok") return {};
  return why(SQLITE_CORRUPT);
}

result<sqlite3_stmt*> sqlite_file::prepared(const char* sql) {
  if (broken_) return *broken_;
  for (const kept_statement& k : statements_)
    if (k.sql == sql) return k.statement.get();
  sqlite3_stmt* made = nullptr;
  int code = sqlite3_prepare_v3(handle_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
  if (code != SQLITE_OK) return why(code);
  statements_.push_back({sql, std::unique_ptr<sqlite3_stmt, finalizer>(made)});
  return made;
}

result<sqlite_rows> sqlite_file::first_row(sqlite3_stmt* statement) {
  sqlite_rows rows(statement, false);
  if (auto ok = next(rows); !ok) return ok.why();
  return rows;
}

result<void> sqlite_file::next(sqlite_rows& rows) {
  int code = sqlite3_step(rows.statement_);
  rows.row_ = code == SQLITE_ROW;
  if (code == SQLITE_ROW || code == SQLITE_DONE) return {};
  return why(code);
}

void sqlite_file::roll_back() {
  for (const kept_statement& k : statements_) sqlite3_reset(k.statement.get());
  if (sqlite3_get_autocommit(handle_.get())) return;
  int code = sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  if (code != SQLITE_OK && !broken_) broken_ = why(code);
}

result<bool> sqlite_file::change_slice(const char* sql, bytes_view key) {
  auto removed = change(sql, key, int64_t{limits::drop_slice_rows});
  if (!removed) return removed.why();
  return *removed == limits::drop_slice_rows;
}

error sqlite_file::why(int code) {
  const auto path = path_.string();
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail("{}: another process has it open; stop that first", path);
    case SQLITE_FULL:
      return fail("{}: the disk is full; make room", path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      broken_ = fail("{}: damaged, or no file of SQLite's; restore it from a copy", path);
      return *broken_;
    case SQLITE_IOERR:
      broken_ = fail("{}: {} (code {}); mend the disk, then start again", path,
                     sqlite3_errstr(code), code);
      return *broken_;
    default:
      return fail("{}: {} (code {})", path, sqlite3_errstr(code), code);
  }
}

void sqlite_file::bind(sqlite3_stmt* s, int column, bytes_view value) {
  check(sqlite3_bind_blob64(s, column, value.data(), value.size(), SQLITE_TRANSIENT) == SQLITE_OK);
}
void sqlite_file::bind(sqlite3_stmt* s, int column, std::string_view value) {
  check(sqlite3_bind_text64(s, column, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8) ==
        SQLITE_OK);
}
void sqlite_file::bind(sqlite3_stmt* s, int column, int64_t value) {
  check(sqlite3_bind_int64(s, column, value) == SQLITE_OK);
}

}  // namespace lethe
