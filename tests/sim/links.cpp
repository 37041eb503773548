#include "tests/sim/links.hpp"

namespace lethe::sim {

void links::settle(const caf::actor& who, const std::string& host) {
  residents_[who.id()] = {who.address(), host};
  who->attach_functor([this, id = who.id()] { forget(id); });
}

/// Of one whose death nobody behind the link knows yet, its place must stay known.
void links::forget(caf::actor_id who) {
  auto found = residents_.find(who);
  if (found != residents_.end() && !found->second.severed && !is_cut(found->second.host))
    residents_.erase(found);
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

/// Who of two lives behind a link that is between them.
const links::resident* links::across(caf::actor_id from, caf::actor_id to) const {
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
void links::sieve(Queue& queue, caf::scheduled_actor& who) {
  letters through;
  for (auto& letter : take_out(queue)) {
    auto* behind = across(sender_of(*letter), who.id());
    if (behind && behind->severed) continue;
    if (behind && is_cut(behind->host))
      held_.push_back({behind->host, caf::strong_actor_ptr(who.ctrl()), std::move(letter)});
    else
      through.push_back(std::move(letter));
  }
  put_back(queue, std::move(through));
}

void links::sieve(caf::scheduled_actor& who) {
  if (cut_.empty() && !ever_severed_) return;
  if (who.peek_at_next_mailbox_element() == nullptr) return;
  sieve(urgent_letters(who), who);
  sieve(normal_letters(who), who);
}

void links::mend(const std::string& host) {
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
