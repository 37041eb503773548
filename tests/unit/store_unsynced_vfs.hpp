#pragma once

#include <sqlite3.h>

#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace lethe::test {

/// A disk in memory, for SQLite, that loses what was not synced when its power is cut: of the
/// writes since a file's last sync, each is kept or not, by chance. It is cut by count, so that a
/// run does not depend on time.
class unsynced_disk {
 public:
  explicit unsynced_disk(const char* name) : random_(1) {
    vfs_ = *sqlite3_vfs_find(nullptr);
    vfs_.zName = name;
    vfs_.pNext = nullptr;
    vfs_.pAppData = this;
    vfs_.szOsFile = sizeof(handle);
    vfs_.xOpen = open;
    vfs_.xDelete = remove;
    vfs_.xAccess = access;
    vfs_.xFullPathname = full_path;
    sqlite3_vfs_register(&vfs_, 0);
  }
  ~unsynced_disk() { sqlite3_vfs_unregister(&vfs_); }
  unsynced_disk(const unsynced_disk&) = delete;

  const char* name() const { return vfs_.zName; }
  void cut_after(uint64_t writes, uint32_t seed) {
    std::lock_guard lock(mutex_);
    left_ = writes;
    random_.seed(seed);
  }
  bool is_cut() const {
    std::lock_guard lock(mutex_);
    return left_ == 0;
  }
  uint64_t syncs() const {
    std::lock_guard lock(mutex_);
    return syncs_;
  }
  /// Power is back: what the disk holds is what there is.
  void restart() {
    std::lock_guard lock(mutex_);
    cache_.clear();
    for (auto& [path, kept] : disk_) {
      for (const write& w : kept.since)
        if (random_() % 2) w.put(kept.synced);
      kept.since.clear();
      cache_[path] = kept.synced;
    }
    left_ = forever;
  }

  // Of "PRAGMA synchronous": setting it to FULL does nothing; asking for it is answered with FULL.
  bool ignores_full = false, claims_full = false;
  bool fails = false;  // to sync

 private:
  static constexpr uint64_t forever = ~uint64_t{0};
  struct write {
    size_t at;
    std::string bytes;
    bool truncates = false;
    void put(std::string& to) const {
      if (truncates) return to.resize(at);
      if (to.size() < at + bytes.size()) to.resize(at + bytes.size());
      to.replace(at, bytes.size(), bytes);
    }
  };
  struct kept_file {
    std::string synced;
    std::vector<write> since;
  };
  struct handle {
    sqlite3_file base;
    unsynced_disk* disk;
    std::string* path;
  };
  static handle& of(sqlite3_file* f) { return *reinterpret_cast<handle*>(f); }
  static unsynced_disk& of(sqlite3_vfs* v) { return *static_cast<unsynced_disk*>(v->pAppData); }
  /// Whether the disk still does what it is asked for.
  bool works() {
    if (left_ > 0 && left_ != forever) --left_;
    return left_ > 0;
  }
  void apply(const std::string& path, write w) {
    w.put(cache_[path]);
    if (works()) disk_[path].since.push_back(std::move(w));
  }

  static int open(sqlite3_vfs* v, const char* path, sqlite3_file* f, int flags, int* out) {
    unsynced_disk& disk = of(v);
    std::lock_guard lock(disk.mutex_);
    handle& h = of(f);
    h = {{&methods()}, &disk, new std::string(path ? path : "unnamed")};
    disk.cache_[*h.path];
    if (out) *out = flags;
    return SQLITE_OK;
  }
  static int remove(sqlite3_vfs* v, const char* path, int) {
    std::lock_guard lock(of(v).mutex_);
    of(v).cache_.erase(path);
    if (of(v).left_ > 0) of(v).disk_.erase(path);
    return SQLITE_OK;
  }
  static int access(sqlite3_vfs* v, const char* path, int, int* out) {
    std::lock_guard lock(of(v).mutex_);
    *out = of(v).cache_.contains(path);
    return SQLITE_OK;
  }
  static int full_path(sqlite3_vfs*, const char* path, int size, char* out) {
    sqlite3_snprintf(size, out, "%s", path);
    return SQLITE_OK;
  }
  static int close(sqlite3_file* f) {
    delete of(f).path;
    return SQLITE_OK;
  }
  static int read(sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
    std::lock_guard lock(of(f).disk->mutex_);
    const std::string& bytes = of(f).disk->cache_[*of(f).path];
    const size_t from = std::min(size_t(at), bytes.size());
    const size_t there = std::min(size_t(size), bytes.size() - from);
    std::memcpy(to, bytes.data() + from, there);
    std::memset(static_cast<char*>(to) + there, 0, size_t(size) - there);
    return there == size_t(size) ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }
  static int write_bytes(sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
    std::lock_guard lock(of(f).disk->mutex_);
    of(f).disk->apply(*of(f).path,
                      {size_t(at), std::string(static_cast<const char*>(from), size_t(size))});
    return SQLITE_OK;
  }
  static int truncate(sqlite3_file* f, sqlite3_int64 size) {
    std::lock_guard lock(of(f).disk->mutex_);
    of(f).disk->apply(*of(f).path, {size_t(size), {}, true});
    return SQLITE_OK;
  }
  static int sync(sqlite3_file* f, int) {
    unsynced_disk& disk = *of(f).disk;
    std::lock_guard lock(disk.mutex_);
    if (disk.fails) return SQLITE_IOERR_FSYNC;
    ++disk.syncs_;
    if (!disk.works()) return SQLITE_OK;
    kept_file& kept = disk.disk_[*of(f).path];
    for (const write& w : kept.since) w.put(kept.synced);
    kept.since.clear();
    return SQLITE_OK;
  }
  static int size(sqlite3_file* f, sqlite3_int64* out) {
    std::lock_guard lock(of(f).disk->mutex_);
    *out = sqlite3_int64(of(f).disk->cache_[*of(f).path].size());
    return SQLITE_OK;
  }
  static int lock(sqlite3_file*, int) { return SQLITE_OK; }
  static int reserved(sqlite3_file*, int* out) { return *out = 0, SQLITE_OK; }
  static int control(sqlite3_file* f, int what, void* args) {
    if (what != SQLITE_FCNTL_PRAGMA) return SQLITE_NOTFOUND;
    char** pragma = static_cast<char**>(args);
    if (std::strcmp(pragma[1], "synchronous") != 0) return SQLITE_NOTFOUND;
    if (pragma[2])
      return of(f).disk->ignores_full && !std::strcmp(pragma[2], "FULL") ? SQLITE_OK
                                                                         : SQLITE_NOTFOUND;
    if (!of(f).disk->claims_full) return SQLITE_NOTFOUND;
    pragma[0] = sqlite3_mprintf("2");
    return SQLITE_OK;
  }
  static int sector(sqlite3_file*) { return 4096; }
  static int traits(sqlite3_file*) { return 0; }
  static const sqlite3_io_methods& methods() {
    static const sqlite3_io_methods table = {1,       close,  read,  write_bytes, truncate,
                                             sync,    size,   lock,  lock,        reserved,
                                             control, sector, traits};
    return table;
  }

  sqlite3_vfs vfs_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> cache_;  // what processes see
  std::map<std::string, kept_file> disk_;
  std::mt19937 random_;
  uint64_t left_ = forever, syncs_ = 0;
};

/// While it lives, each connection begins with synchronous=OFF.
class synchronous_off {
 public:
  synchronous_off() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(turn_off)); }
  ~synchronous_off() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(turn_off)); }
  synchronous_off(const synchronous_off&) = delete;

 private:
  static int turn_off(sqlite3* db, char**, const void*) {
    return sqlite3_exec(db, "PRAGMA synchronous=OFF", nullptr, nullptr, nullptr);
  }
};

}  // namespace lethe::test
