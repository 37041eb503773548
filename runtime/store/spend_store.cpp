#include "runtime/store/spend_store.hpp"

namespace lethe {
namespace {

/// Outcomes wait this long for spends to go along with, and for another try after a failure.
constexpr std::chrono::milliseconds settles_wait{50};

}  // namespace

spend_store::spend_store(std::unique_ptr<spend_ledger> ledger, spend_bounds bounds)
    : ledger_(std::move(ledger)), bounds_(bounds), thread_([this] { run(); }) {}

spend_store::~spend_store() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_one();
  thread_.join();
  for (drop& d : drops_) d.then(fail("the store was closed before all of the key was dropped"));
}

bool spend_store::spend(const token_id& token, const hash32& change_digest,
                        done<spend_answer> then) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || waiting_.spends.size() >= bounds_.waiting_max) return false;
    waiting_.spends.push_back({token, change_digest});
    waiting_.spends_done.push_back(std::move(then));
  }
  ready_.notify_one();
  return true;
}

bool spend_store::settle(const token_id& token, outcome is) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || waiting_.settles.size() >= bounds_.settles_max) return false;
    waiting_.settles.push_back({token, is});
  }
  ready_.notify_one();
  return true;
}

bool spend_store::put_question(std::function<void(spend_ledger&)> question) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || waiting_.questions.size() >= bounds_.waiting_max) return false;
    waiting_.questions.push_back(std::move(question));
  }
  ready_.notify_one();
  return true;
}

bool spend_store::ask_change(const token_id& token, done<change_state> then) {
  return put_question(
      [token, then = std::move(then)](spend_ledger& ledger) { then(ledger.state(token)); });
}

bool spend_store::count(const hash32& key_id, done<uint64_t> then) {
  return put_question(
      [key_id, then = std::move(then)](spend_ledger& ledger) { then(ledger.count(key_id)); });
}

bool spend_store::drop_key(const hash32& key_id, done<void> then) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || drops_.size() >= bounds_.waiting_max) return false;
    drops_.push_back({key_id, std::move(then)});
  }
  ready_.notify_one();
  return true;
}

bool spend_store::urgent() const {
  return stopping_ || !waiting_.spends.empty() || !waiting_.questions.empty() || !drops_.empty();
}

/// False when this is the last time.
bool spend_store::take(work& to) {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [this] { return urgent() || !waiting_.settles.empty(); });
  ready_.wait_for(lock, settles_wait, [this] { return urgent(); });
  to = std::exchange(waiting_, {});
  return !stopping_;
}

void spend_store::commit(work& w) {
  if (w.spends.empty() && w.settles.empty()) return;
  auto committed = ledger_->commit(w.spends, w.settles);
  if (!committed) {
    std::lock_guard lock(mutex_);
    auto& later = waiting_.settles;
    later.insert(later.begin(), w.settles.begin(), w.settles.end());
  }
  for (size_t i = 0; i < w.spends.size(); ++i) {
    if (!committed)
      w.spends_done[i](committed.why());
    else
      w.spends_done[i](w.spends[i].fresh ? spend_answer::fresh : spend_answer::spent_before);
  }
}

void spend_store::drop_slice() {
  std::unique_lock lock(mutex_);
  if (drops_.empty()) return;
  const hash32 key_id = drops_.front().key_id;
  lock.unlock();
  auto more = ledger_->drop_some(key_id);
  if (more && *more) return;
  lock.lock();
  drop finished = std::move(drops_.front());
  drops_.pop_front();
  lock.unlock();
  finished.then(more ? result<void>{} : more.why());
}

void spend_store::run() {
  for (bool more = true; more;) {
    work w;
    more = take(w);
    commit(w);
    for (const auto& question : w.questions) question(*ledger_);
    drop_slice();
  }
}

}  // namespace lethe
