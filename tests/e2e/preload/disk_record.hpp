#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <string>

/// What a disk would still hold if its power went now. Programs work on its folder D as usual;
/// beside it, D.synced has by inode number
///   N       a file's bytes, or a folder's names (lines "TYPE N NAME"), as they were synced last
///   pin-N   the file itself, linked, so that its number is not given to another one
///   lies    if it is there: syncs of paths with this text in them are not believed
/// A name lasts once its folder was synced, a folder's own name once the one above was: POSIX
/// promises no more, though most file systems keep more.
namespace lethe::disk {

inline std::string record_of(const std::string& synced, ino_t n) {
  return synced + "/" + std::to_string(n);
}
inline std::string pin_of(const std::string& synced, ino_t n) {
  return synced + "/pin-" + std::to_string(n);
}

/// By pread, because to open and close a file again would let go of the process's locks on it.
inline std::string bytes_of(int fd) {
  std::string all;
  char part[65536];
  for (ssize_t n; (n = ::pread(fd, part, sizeof part, off_t(all.size()))) > 0;)
    all.append(part, size_t(n));
  return all;
}

/// As a whole, should the writer be killed.
inline void put(const std::string& to, const std::string& bytes) {
  const std::string part = to + ".part";
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool good = fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == ssize_t(bytes.size());
  if (fd >= 0) ::close(fd);
  if (!good || ::rename(part.c_str(), to.c_str()) != 0) std::perror(to.c_str());
}

inline std::string names_in(const std::string& folder) {
  std::set<std::string> lines;
  if (DIR* all = ::opendir(folder.c_str())) {
    while (const dirent* d = ::readdir(all)) {
      const std::string name = d->d_name;
      if (name == "." || name == "..") continue;
      if (d->d_type != DT_REG && d->d_type != DT_DIR) continue;
      lines.insert((d->d_type == DT_DIR ? "d " : "f ") + std::to_string(d->d_ino) + " " + name);
    }
    ::closedir(all);
  }
  std::string text;
  for (const auto& l : lines) text += l + "\n";
  return text;
}

inline void pin(const std::string& file, const std::string& synced) {
  struct stat info {};
  if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode))
    (void)!::link(file.c_str(), pin_of(synced, info.st_ino).c_str());  // or it is there
}

/// A folder's names; what others rename meanwhile must not be missed.
inline void record_names(const std::string& folder, ino_t n, const std::string& synced) {
  std::string names = names_in(folder), again;
  while ((again = names_in(folder)) != names) names = again;
  std::istringstream lines(names);
  std::string type, number, name;
  while (lines >> type >> number && lines.get() && std::getline(lines, name))
    pin(folder + "/" + name, synced);
  put(record_of(synced, n), names);
}

}  // namespace lethe::disk
