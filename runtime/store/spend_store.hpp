#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/store/spend_ledger.hpp"
#include "runtime/store/store_limits.hpp"

namespace lethe {

enum class spend_answer : uint8_t { fresh, spent_before };

/// How much may wait for the thread of a spend_store.
struct spend_bounds {
  uint32_t waiting_max = limits::spends_waiting_max;  // of spends; of questions, too
  uint32_t settles_max = limits::settles_waiting_max;
};

/// Spends tokens, many at a time: one thread takes all that wait into one transaction of the
/// ledger. Any thread may ask; what a call hands in as `done` is called once, on the store's
/// thread, and must not throw. A call that returns false was refused because the store is busy:
/// its `done` is not called.
class spend_store {
 public:
  template <class T>
  using done = std::function<void(result<T>)>;

  explicit spend_store(std::unique_ptr<spend_ledger> ledger, spend_bounds bounds = {});
  /// What waits is done first; a drop stops where it is, with an error.
  ~spend_store();
  spend_store(const spend_store&) = delete;
  spend_store& operator=(const spend_store&) = delete;

  /// `fresh` is told only once the spend is durable, and of a token only once. After an error the
  /// token may be spent; its change is then due.
  [[nodiscard]] bool spend(const token_id& token, const hash32& change_digest,
                           done<spend_answer> then);
  /// For who was told `fresh`. It goes along with the next spends, or alone a little later. When it
  /// is refused, and when this process dies first, the change will be due.
  [[nodiscard]] bool settle(const token_id& token, outcome is);
  /// After all that was spent and settled before.
  [[nodiscard]] bool ask_change(const token_id& token, done<change_state> then);
  [[nodiscard]] bool count(const hash32& key_id, done<uint64_t> then);
  /// Removes all of a key that is no longer redeemed; spends go on meanwhile.
  [[nodiscard]] bool drop_key(const hash32& key_id, done<void> then);

 private:
  struct drop {
    hash32 key_id;
    done<void> then;
  };
  struct work {
    std::vector<spend_entry> spends;
    std::vector<done<spend_answer>> spends_done;
    std::vector<settlement> settles;
    std::vector<std::function<void(spend_ledger&)>> questions;
  };

  bool put_question(std::function<void(spend_ledger&)> question);
  bool urgent() const;
  bool take(work& to);
  void commit(work& w);
  void drop_slice();
  void run();

  std::unique_ptr<spend_ledger> ledger_;
  const spend_bounds bounds_;
  std::mutex mutex_;
  std::condition_variable ready_;
  work waiting_;
  std::deque<drop> drops_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lethe
