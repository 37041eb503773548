#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <random>
#include <vector>

#include "runtime/store/spend_store.hpp"

namespace lethe::test {

namespace fs = std::filesystem;

class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (fs::temp_directory_path() / "lethe-store-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~temporary_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline hash32 hash_of(std::string_view what, uint32_t n) {
  return sha256({as_bytes(what), as_bytes({reinterpret_cast<const char*>(&n), sizeof n})});
}
inline hash32 key_of(uint32_t n) { return hash_of("key", n); }
inline token_id token_of(uint32_t n, uint32_t key = 0) {
  return {key_of(key), hash_of("token", n)};
}
inline hash32 digest_of(uint32_t n) { return hash_of("digest", n); }

/// What a call hands to its `done`.
template <class T, class Call>
result<T> answer_of(Call&& call) {
  auto told = std::make_shared<std::promise<result<T>>>();
  auto answer = told->get_future();
  if (!call([told](result<T> r) { told->set_value(std::move(r)); })) return fail("busy");
  return answer.get();
}

inline result<spend_answer> spend_now(spend_store& store, const token_id& t, const hash32& d) {
  return answer_of<spend_answer>([&](auto done) { return store.spend(t, d, done); });
}
inline result<change_state> change_of(spend_store& store, const token_id& t) {
  return answer_of<change_state>([&](auto done) { return store.ask_change(t, done); });
}
inline result<uint64_t> count_of(spend_store& store, uint32_t key) {
  return answer_of<uint64_t>([&](auto done) { return store.count(key_of(key), done); });
}
inline result<void> drop_now(spend_store& store, uint32_t key) {
  return answer_of<void>([&](auto done) { return store.drop_key(key_of(key), done); });
}

inline bool is_fresh(const result<spend_answer>& a) { return a && *a == spend_answer::fresh; }
inline bool is_spent_before(const result<spend_answer>& a) {
  return a && *a == spend_answer::spent_before;
}
inline bool is(const result<change_state>& s, change_state::what what) {
  return s && s->is == what;
}
inline bool is_due(const result<change_state>& s, const hash32& digest) {
  return is(s, change_state::what::due) && s->change_digest == digest;
}

inline std::unique_ptr<spend_store> open_spends(const store_place& place,
                                                spend_bounds bounds = {}) {
  auto ledger = open_sqlite_spends(place);
  if (!ledger) ADD_FAILURE() << ledger.why().text;
  return ledger ? std::make_unique<spend_store>(*std::move(ledger), bounds) : nullptr;
}

using reporter = std::function<void(uint32_t)>;

/// A process does `work` and reports numbers until it is killed, at any moment after `enough` of
/// them. Returns all that it has reported.
inline std::vector<uint32_t> reported_before_kill(
    size_t enough, const std::function<void(const reporter&)>& work) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    work([out = ends[1]](uint32_t n) {
      if (::write(out, &n, sizeof n) != sizeof n) ::_exit(2);
    });
    ::_exit(1);  // it must not come to an end
  }
  ::close(ends[1]);
  std::vector<uint32_t> reported;
  uint32_t n = 0;
  bool alive = true;
  while (::read(ends[0], &n, sizeof n) == sizeof n) {
    reported.push_back(n);
    if (alive && reported.size() >= enough) {
      ::kill(child, SIGKILL);
      alive = false;
    }
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself";
  return reported;
}

/// Spends tokens from 0 on, as fast as the store takes them, and reports each that was fresh.
inline void spend_until(spend_store& store, const std::function<bool()>& stop,
                        const reporter& report) {
  for (uint32_t n = 0; !stop();) {
    auto then = [n, report](const result<spend_answer>& a) {
      if (is_fresh(a)) report(n);
    };
    if (store.spend(token_of(n), digest_of(n), then))
      ++n;
    else
      std::this_thread::yield();
  }
}

}  // namespace lethe::test
