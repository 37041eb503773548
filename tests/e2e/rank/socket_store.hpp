#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "parallel/rank_store.hpp"

// A store in one process, and others that ask it through a socket each. Blobs with a length go
// either way: "s" key value, answered by "" or a reason; "g" key milliseconds, answered by "v" and
// the value or "e" and a reason; at last "e" and why the rank ended, if it says so.

namespace lethe::e2e {

inline bool put_blob(int fd, std::string_view what) {
  auto size = uint32_t(what.size());
  return ::send(fd, &size, sizeof size, MSG_NOSIGNAL) == ssize_t(sizeof size) &&
         ::send(fd, what.data(), size, MSG_NOSIGNAL) == ssize_t(size);
}

inline std::optional<std::string> get_blob(int fd) {
  uint32_t size = 0;
  if (recv(fd, &size, sizeof size, MSG_WAITALL) != ssize_t(sizeof size)) return {};
  std::string what(size, '\0');
  if (size != 0 && recv(fd, what.data(), size, MSG_WAITALL) != ssize_t(size)) return {};
  return what;
}

/// As a rank sees it.
class socket_store final : public rank_store {
 public:
  explicit socket_store(int fd) : fd_(fd) {}
  result<void> set(std::string_view key, bytes_view value) override {
    auto why = ask("s", key, as_text(value));
    if (!why || !why->empty()) return fail("rank store: {}", why.value_or("gone"));
    return {};
  }
  result<std::vector<std::byte>> get(std::string_view key, deadline until) override {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    auto told = ask("g", key, std::to_string(left.count()));
    if (!told || told->empty() || told->front() != 'v')
      return fail("rank store: {}", told ? told->substr(1) : "gone");
    bytes_view value = as_bytes(*told).subspan(1);
    return std::vector<std::byte>(value.begin(), value.end());
  }
  void say_why(std::string_view why) { put_blob(fd_, "e") && put_blob(fd_, why); }

 private:
  std::optional<std::string> ask(std::string_view what, std::string_view key,
                                 std::string_view more) {
    if (!put_blob(fd_, what) || !put_blob(fd_, key) || !put_blob(fd_, more)) return {};
    return get_blob(fd_);
  }
  int fd_;
};

/// Answers one rank until it is gone; what it said at last.
inline std::string serve_store(int fd, rank_store& store) {
  while (auto what = get_blob(fd)) {
    auto key = get_blob(fd);
    if (!key) break;
    if (*what == "e") return *key;
    auto more = get_blob(fd);
    if (!more) break;
    if (*what == "s") {
      auto done = store.set(*key, as_bytes(*more));
      put_blob(fd, done ? "" : done.why().text);
      continue;
    }
    auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::stoll(*more));
    auto value = store.get(*key, until);
    put_blob(fd, value ? "v" + std::string(as_text(*value)) : "e" + value.why().text);
  }
  return {};
}

}  // namespace lethe::e2e
