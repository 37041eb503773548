#include "actors/cluster/rank_house.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>
#include <list>
#include <thread>

#include "actors/cluster/child_process.hpp"
#include "actors/cluster/rank_link.hpp"
#include "actors/cluster/rank_socket.hpp"
#include "parallel/process_ranks.hpp"
#include "runtime/base/first_error.hpp"
#include "runtime/crypto/random.hpp"

namespace lethe {

namespace {

using steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_again{20}, end_patience{2000};

/// A store whose askers needn't wait for a rank that has ended.
class watched_store final : public rank_store {
 public:
  result<void> set(std::string_view key, bytes_view value) override {
    return values_.set(key, value);
  }
  result<std::vector<std::byte>> get(std::string_view key, deadline until) override {
    for (;;) {
      const auto now = steady::now();
      auto value = values_.get(key, std::min(until, now + look_again));
      if (value || now >= until) return value;
      if (auto lost = lost_.get(); !lost) return lost.why();
    }
  }
  void lose(error why) { lost_.set(std::move(why)); }
  result<void> health() const { return lost_.get(); }

 private:
  memory_rank_store values_;
  first_error lost_;
};

/// The other ranks' processes.
class rank_house {
 public:
  explicit rank_house(key_bytes secret) : secret_(std::move(secret)) {}
  /// Ranks end when their leader has told them; who doesn't is killed.
  ~rank_house() {
    for (auto& r : ranks_) end(r);
  }
  result<void> add(uint32_t number, const wire<schema::StartEngine>& order, int weights) {
    int both[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0)
      return fail("a rank's process cannot be started: {}", std::strerror(errno));
    owned_fd ours(both[0]), theirs(both[1]);
    auto held = order_in_memory(order.frame);
    if (!held) return held.why();
    auto pid = start_child({"lethe", "rank-process", std::to_string(number)}, held->get(),
                           {theirs.get(), weights});
    if (!pid) return pid.why();
    auto& r = ranks_.emplace_back(number, *pid, *std::move(held), std::move(ours));
    (void)::send(r.socket.get(), secret_.data(), secret_.size(), MSG_NOSIGNAL);
    r.answers = std::thread([this, &r] {
      answer_rank(r.socket.get(), store_);
      auto words = last_words(r.order.get());
      store_.lose(fail("rank {}: {}", r.number, words.empty() ? "its process ended" : words));
    });
    return {};
  }
  rank_store& store() { return store_; }
  result<void> health() const { return store_.health(); }
  key_bytes secret() const { return key_bytes(secret_.view()); }

 private:
  struct rank {
    rank(uint32_t n, int p, owned_fd o, owned_fd s)
        : number(n), pid(p), order(std::move(o)), socket(std::move(s)) {}
    uint32_t number;
    int pid;
    owned_fd order, socket;
    std::thread answers;
  };

  static void end(rank& r) {
    ::shutdown(r.socket.get(), SHUT_RDWR);
    if (r.answers.joinable()) r.answers.join();
    const auto until = steady::now() + end_patience;
    while (::waitpid(r.pid, nullptr, WNOHANG) == 0) {
      if (steady::now() > until) ::kill(r.pid, SIGKILL);
      std::this_thread::sleep_for(look_again);
    }
  }

  key_bytes secret_;
  watched_store store_;
  std::list<rank> ranks_;
};

/// Leads them, and outlasts them.
class housed_ranks final : public step_ranks {
 public:
  housed_ranks(std::unique_ptr<rank_house> house, std::unique_ptr<process_ranks> leader)
      : house_(std::move(house)), leader_(std::move(leader)) {}
  void submit(const step_plan& plan, const step_data& data) override {
    leader_->submit(plan, data);
  }
  result<void> wait_oldest() override { return leader_->wait_oldest(); }
  result<void> health() const override { return house_->health(); }

 private:
  std::unique_ptr<rank_house> house_;
  std::unique_ptr<process_ranks> leader_;  // ends first
};

}  // namespace

result<std::unique_ptr<step_ranks>> start_ranks(const wire<schema::StartEngine>& order,
                                                const loaded_model& model,
                                                const grid_config& config) {
  key_bytes secret(rank_secret_bytes);
  fill_random(secret.bytes());
  auto house = std::make_unique<rank_house>(std::move(secret));
  for (uint32_t rank = 1; rank < config.ranks.tensor * config.ranks.pipeline; ++rank)
    if (auto added = house->add(rank, order, model.memfd()); !added) return added.why();
  rank_link link;
  auto read = unpack(order, [&](schema::StartEngine::Reader r) {
    link = link_of(r.getSpec(), config, 0, house->secret());
  });
  if (!read) return read.why();
  auto groups = join_rank_groups(link.base, config.ranks, house->store());
  if (!groups) return groups.why();
  auto leader = process_ranks::start(model.weights(), config, *std::move(groups), link.spin);
  if (!leader) return leader.why();
  return std::unique_ptr<step_ranks>(new housed_ranks(std::move(house), *std::move(leader)));
}

}  // namespace lethe
