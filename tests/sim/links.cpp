#include "tests/sim/links.hpp"

namespace lethe::sim {

void links::settle(const caf::actor& who, const std::string& host) {
  residents_[who.id()] = {who.address(), host};
}

void links::settle_requests_of(caf::actor_id engine, const std::deque<caf::resumable*>& jobs) {
  auto home = residents_.find(engine);
  if (home == residents_.end()) return;
  auto newest = newest_request_;
  for (auto* job : jobs) {
    auto* who = dynamic_cast<caf::scheduled_actor*>(job);
    if (!who || std::string_view(who->name()) != "request" || who->id() <= newest_request_)
      continue;
    newest = std::max(newest, who->id());
    settle(caf::actor_cast<caf::actor>(who), home->second.host);
    residents_[who->id()].severed = home->second.severed;
  }
  newest_request_ = newest;
}

/// Who of two lives behind a link that is between them. What nobody sends comes from its own host.
const links::resident* links::across(caf::actor_id from, caf::actor_id to) const {
  if (from == 0) return nullptr;
  auto a = residents_.find(from), b = residents_.find(to);
  bool one = a != residents_.end(), other = b != residents_.end();
  if (one == other) return nullptr;
  return one ? &a->second : &b->second;
}

namespace {

/// News of a death is its sender's, who may be too dead to be named.
caf::actor_id sender_of(const caf::mailbox_element& letter) {
  if (letter.sender) return letter.sender->id();
  const auto& content = letter.content();
  return content.match_elements<caf::down_msg>() ? content.get_as<caf::down_msg>(0).source.id() : 0;
}

}  // namespace

template <class Queue>
size_t links::sieve(Queue& queue, caf::scheduled_actor& who, size_t arrived) {
  letters through;
  for (auto& letter : take_out(queue)) {
    auto* behind = through.size() < arrived ? nullptr : across(sender_of(*letter), who.id());
    if (behind && behind->severed) continue;
    if (behind && is_cut(behind->host))
      held_.push_back({behind->host, caf::strong_actor_ptr(who.ctrl()), std::move(letter)});
    else
      through.push_back(std::move(letter));
  }
  size_t left = through.size();
  put_back(queue, std::move(through));
  return left;
}

links::arrivals links::sieve_all(caf::scheduled_actor& who) {
  who.mailbox().fetch_more();
  if (who.peek_at_next_mailbox_element() == nullptr) return {};
  auto before = arrived_[who.id()];
  return {sieve(urgent_letters(who), who, before.urgent),
          sieve(normal_letters(who), who, before.normal)};
}

void links::sieve(caf::scheduled_actor& who) {
  if (!cut_.empty() || ever_severed_) sieve_all(who);
}

void links::took(caf::scheduled_actor& who) {
  if (cut_.empty() && !ever_severed_) return;
  arrived_[who.id()] = {urgent_letters(who).total_task_size(),
                        normal_letters(who).total_task_size()};
}

void links::cut(const std::string& host, const std::deque<caf::resumable*>& jobs) {
  if (cut_.empty() && !ever_severed_) arrived_.clear();
  sieve_everybody(jobs);
  cut_.insert(host);
}

void links::sieve_everybody(const std::deque<caf::resumable*>& jobs) {
  for (auto* job : jobs)
    if (auto* who = dynamic_cast<caf::scheduled_actor*>(job)) arrived_[who->id()] = sieve_all(*who);
}

void links::mend(const std::string& host, const std::deque<caf::resumable*>& jobs) {
  sieve_everybody(jobs);  // what was sent meanwhile comes behind what is held
  cut_.erase(host);
  std::deque<parcel> held;
  std::swap(held, held_);
  for (auto& p : held) {
    if (p.host == host)
      p.to->enqueue(std::move(p.letter), nullptr);
    else
      held_.push_back(std::move(p));
  }
}

std::vector<caf::actor_addr> links::sever(const std::string& host) {
  ever_severed_ = true;
  std::erase_if(held_, [&host](const parcel& p) { return p.host == host; });
  std::vector<caf::actor_addr> all;
  for (auto& [id, one] : residents_) {
    if (one.host != host || one.severed) continue;
    one.severed = true;
    all.push_back(one.address);
  }
  return all;
}

}  // namespace lethe::sim
