#include "actors/cluster/rank_children.hpp"

#include <sys/wait.h>

#include <algorithm>

#include "actors/cluster/child_process.hpp"
#include "actors/cluster/process_house.hpp"

namespace lethe {

namespace {

constexpr std::chrono::seconds end_patience{2};

}  // namespace

result<void> rank_children::add(uint32_t rank, const wire<schema::StartRanks>& order,
                                const node_tls& tls, std::optional<int> weights) {
  auto held = order_in_memory(order.frame);
  if (!held) return held.why();
  std::vector<std::string> words{"lethe", "rank-process", std::to_string(rank), "--beside"};
  for (auto& word : words_of(tls)) words.push_back(std::move(word));
  auto pid = start_child(words, held->get(), weights);
  if (!pid) return pid.why();
  std::lock_guard lock(mutex_);
  auto& c = all_.emplace_back(rank, *pid, *std::move(held));
  c.thread = std::thread([this, &c] { await(c); });
  return {};
}

void rank_children::await(child& c) {
  const auto how = await_end(c.pid);
  {
    std::lock_guard lock(mutex_);
    c.ended = true;
    ::waitpid(c.pid, nullptr, 0);
  }
  changed_.notify_all();
  then_(c.rank, how_it_ended(how, c.order.get()));
}

rank_children::~rank_children() {
  {
    std::unique_lock lock(mutex_);
    auto are_gone = [this] { return std::ranges::all_of(all_, &child::ended); };
    if (!changed_.wait_for(lock, end_patience, are_gone))
      for (const auto& c : all_)
        if (!c.ended) ::kill(c.pid, SIGKILL);
  }
  for (auto& c : all_) c.thread.join();
}

}  // namespace lethe
