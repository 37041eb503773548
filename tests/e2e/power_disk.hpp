#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "tests/e2e/command.hpp"
#include "tests/e2e/preload/disk_record.hpp"

namespace lethe {

/// A folder that stands for a disk of the programs that run with places::disk_library before them:
/// it can lose what they did not sync.
class power_disk {
 public:
  explicit power_disk(std::filesystem::path folder)
      : folder_(std::move(folder)), synced_(folder_.string() + ".synced") {
    std::filesystem::create_directories(folder_);
    settle();
  }

  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

  /// All that is there now lasts. Nobody writes meanwhile.
  void settle() const {
    std::filesystem::remove_all(synced_);
    std::filesystem::create_directory(synced_);
    settle(folder_);
  }
  /// From now on, syncs of paths with that in them do nothing.
  void believe_no_sync_of(const std::string& text) const {
    std::ofstream(synced_ / "lies") << text;
  }
  /// Those who worked on it are dead. Without chance all that was not synced is gone; with it each
  /// name, length and sector is as it was or as it became, by itself.
  void lose_power(std::mt19937* chance) const {
    const std::filesystem::path next = folder_.string() + ".next";
    rebuild(inode_of(folder_), folder_, next, chance);
    // Whoever reads it from another machine, as a gateway that starts does, hardly sees it gone.
    const std::filesystem::path lost = folder_.string() + ".lost";
    std::filesystem::rename(folder_, lost);
    std::filesystem::rename(next, folder_);
    std::filesystem::remove_all(lost);
    settle();
  }

 private:
  static constexpr size_t sector_bytes = 512;
  struct entry {
    bool folder = false;
    ino_t inode = 0;
    std::filesystem::path file;  // as it is now
    bool operator==(const entry& o) const { return inode == o.inode; }
  };
  using names = std::map<std::string, entry>;

  static bool coin(std::mt19937& chance) { return chance() % 2 == 0; }
  static ino_t inode_of(const std::filesystem::path& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
  }
  void settle(const std::filesystem::path& folder) const {
    disk::record_names(folder, inode_of(folder), synced_);
    for (const auto& f : std::filesystem::directory_iterator(folder)) {
      if (f.is_directory()) settle(f.path());
      if (f.is_regular_file())
        disk::put(disk::record_of(synced_, inode_of(f.path())), read_file(f.path()));
    }
  }
  static names read_names(const std::string& text) {
    names all;
    std::istringstream lines(text);
    std::string type, name;
    entry e;
    while (lines >> type >> e.inode && lines.get() && std::getline(lines, name)) {
      e.folder = type == "d";
      all[name] = e;
    }
    return all;
  }

  /// What a folder comes back with: its names as they were synced, as they are, or some of each.
  names names_after(ino_t inode, const std::filesystem::path& now, std::mt19937* chance) const {
    names all = read_names(read_file(disk::record_of(synced_, inode)));
    for (auto& [name, e] : all)
      e.file = e.folder ? now / name : std::filesystem::path(disk::pin_of(synced_, e.inode));
    if (!chance) return all;
    names live = read_names(disk::names_in(now));
    std::erase_if(all, [&](const auto& a) { return !live.contains(a.first) && coin(*chance); });
    for (auto& [name, e] : live) {
      e.file = now / name;
      auto kept = all.find(name);
      if ((kept == all.end() || !(kept->second == e)) && coin(*chance)) all[name] = e;
    }
    return all;
  }
  std::string bytes_after(const entry& e, std::mt19937* chance) const {
    std::string kept = read_file(disk::record_of(synced_, e.inode));
    if (!chance) return kept;
    const std::string now = read_file(e.file);
    if (coin(*chance)) kept.resize(now.size());
    for (size_t at = 0; at < std::min(kept.size(), now.size()); at += sector_bytes) {
      const size_t n = std::min({sector_bytes, kept.size() - at, now.size() - at});
      if (kept.compare(at, n, now, at, n) != 0 && coin(*chance)) kept.replace(at, n, now, at, n);
    }
    return kept;
  }
  void rebuild(ino_t inode, const std::filesystem::path& now, const std::filesystem::path& to,
               std::mt19937* chance) const {
    std::filesystem::create_directory(to);
    if (std::filesystem::exists(now))
      std::filesystem::permissions(to, std::filesystem::status(now).permissions());
    for (const auto& [name, e] : names_after(inode, now, chance)) {
      if (e.folder) {
        rebuild(e.inode, e.file, to / name, chance);
        continue;
      }
      std::ofstream(to / name, std::ios::binary) << bytes_after(e, chance);
      if (std::filesystem::exists(e.file))
        std::filesystem::permissions(to / name, std::filesystem::status(e.file).permissions());
    }
  }

  const std::filesystem::path folder_, synced_;
};

}  // namespace lethe
