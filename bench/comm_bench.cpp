// What it takes to add up floats across ranks, by kind of communicator and by size: threads of a
// process (local), and what processes use (gloo), on protected links and on sealed ones. Sums are
// compared with the tree's first. Beside each: the same bytes exchanged by bare sockets over
// loopback, and copied in memory, in the same run. Prints one line of JSON for each.
// Ranks are threads here; links between processes of one host go the same way.
// With models, also what their decode steps take with ranks so connected, logits compared first.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "bench/spread.hpp"
#include "parallel/gloo_communicator.hpp"
#include "parallel/link.hpp"
#include "parallel/local_communicator.hpp"
#include "parallel/process_ranks.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"

namespace lethe::bench {
namespace {

using steady = std::chrono::steady_clock;
using ends = std::vector<std::unique_ptr<communicator>>;

struct settings {
  uint32_t ranks = 2;
  bool spin = true;
  double seconds = 0.3;  // for each number
};

/// Each on a core of its own, as long as there are some: two ranks on one measure the scheduler.
void stay_on_core(uint32_t rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(rank % std::thread::hardware_concurrency(), &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// Threads that are started from now on go where there is room.
void go_anywhere() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (uint32_t i = 0; i < std::thread::hardware_concurrency(); ++i) CPU_SET(i, &set);
  sched_setaffinity(0, sizeof set, &set);
}

template <class Body>
void on_all(uint32_t ranks, Body&& body) {
  std::vector<std::thread> threads;
  for (uint32_t r = 1; r < ranks; ++r)
    threads.emplace_back([&body, r] { stay_on_core(r), body(r); });
  if (ranks > 1) stay_on_core(0);
  body(0u);
  for (std::thread& t : threads) t.join();
}

ends make_group(const std::string& over, const settings& s) {
  if (over == "local") return make_local_group(s.ranks, s.spin);
  memory_rank_store store;
  ends group(s.ranks);
  on_all(s.ranks, [&](uint32_t r) {
    auto joined = gloo_communicator::join({.epoch = 1,
                                           .group = "bench",
                                           .rank = r,
                                           .size = s.ranks,
                                           .secret = key_bytes(32),
                                           .protected_link = over == "gloo",
                                           .spin = s.spin},
                                          store);
    check(bool(joined));
    group[r] = *std::move(joined);
  });
  return group;
}

/// The bits of the tree, on every rank.
bool adds_right(ends& group, size_t floats) {
  std::mt19937 random(uint32_t(floats) + 1);
  std::vector<std::vector<float>> rows(group.size(), std::vector<float>(floats));
  for (auto& row : rows)
    for (float& x : row) x = std::ldexp(float(int(random())), -int(random() % 60));
  auto level = rows;
  for (size_t width = 1; width < level.size(); width *= 2)
    for (size_t i = 0; i + width < level.size(); i += 2 * width)
      for (size_t k = 0; k < floats; ++k) level[i][k] += level[i + width][k];
  on_all(uint32_t(group.size()), [&](uint32_t r) { check(bool(group[r]->all_reduce(rows[r]))); });
  return std::ranges::all_of(rows, [&](const auto& row) { return row == level[0]; });
}

/// Microseconds of `work` on every rank at once, as rank 0 sees them. Rank 0 says how often.
template <class Work>
std::vector<double> measure(uint32_t ranks, double seconds, Work&& work) {
  constexpr uint32_t batch = 50;
  std::vector<double> us;
  std::atomic<uint32_t> batches = 1;
  std::atomic<uint32_t> told = 0;
  on_all(ranks, [&](uint32_t r) {
    auto end = steady::now() + std::chrono::duration<double>(seconds);
    for (uint32_t b = 0;; ++b) {
      if (r == 0) batches = steady::now() < end || b < 2 ? b + 1 : b, told = b + 1;
      while (told.load() < b + 1) std::this_thread::yield();
      if (batches.load() < b + 1) return;
      for (uint32_t i = 0; i < batch; ++i) {
        auto begin = steady::now();
        work(r);
        std::chrono::duration<double, std::micro> took = steady::now() - begin;
        if (r == 0 && b > 0) us.push_back(took.count());
      }
    }
  });
  return us;
}

/// Two ends of one connection over loopback.
std::array<owned_fd, 2> connected_sockets() {
  sockaddr_in at{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
  socklen_t size = sizeof at;
  owned_fd door(socket(AF_INET, SOCK_STREAM, 0));
  check(bind(door.get(), reinterpret_cast<sockaddr*>(&at), size) == 0 &&
        listen(door.get(), 1) == 0);
  check(getsockname(door.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
  owned_fd caller(socket(AF_INET, SOCK_STREAM, 0));
  check(connect(caller.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
  std::array<owned_fd, 2> both{owned_fd(accept(door.get(), nullptr, nullptr)), std::move(caller)};
  int one = 1;
  for (auto& fd : both) setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return both;
}

/// Sends all and receives all, never asleep.
void exchange(int fd, std::vector<std::byte>& mine, std::vector<std::byte>& theirs) {
  for (size_t sent = 0, got = 0; sent < mine.size() || got < theirs.size();) {
    ssize_t n = 0;
    if (sent < mine.size())
      n = send(fd, mine.data() + sent, mine.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) sent += size_t(n);
    n = recv(fd, theirs.data() + got, theirs.size() - got, MSG_DONTWAIT);
    if (n > 0) got += size_t(n);
  }
}

double socket_us(size_t bytes, double seconds) {
  auto fds = connected_sockets();
  std::vector<std::byte> mine[2], theirs[2];
  for (int r = 0; r < 2; ++r) mine[r].resize(bytes), theirs[r].resize(bytes);
  return spread_of(
             measure(2, seconds, [&](uint32_t r) { exchange(fds[r].get(), mine[r], theirs[r]); }))
      .median;
}

double copy_us(size_t bytes, double seconds) {
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
  return spread_of(measure(1, seconds,
                           [&](uint32_t) {
                             std::memcpy(to.data(), from.data(), bytes);
                             asm volatile("" : : "r"(to.data()) : "memory");
                           }))
      .median;
}

/// What bounds it: threads read and write memory, the others' bytes go through sockets.
double limit_us(const std::string& over, double socket, double copy) {
  return over == "local" ? copy : socket;
}

/// One sequence, a token a step.
struct decode {
  step_plan plan;
  uint32_t id = 5;
  std::vector<float> logits;
  explicit decode(uint32_t vocab) : logits(vocab) {
    plan.tokens = plan.logit_rows = 1;
    plan.entries = {{.tokens = 1, .page_count = 4, .logit_rows = 1}};
    plan.pages = {0, 1, 2, 3};
  }
  void next(step_ranks& ranks) {
    ranks.submit(plan, {.token_ids = &id, .logits = logits.data(), .caller_waits = true});
    check(bool(ranks.wait_oldest()));
    plan.entries[0].position = (plan.entries[0].position + 1) % 64;
    id = (id * 7 + 3) % uint32_t(logits.size());
  }
};

/// Microseconds of a step; `same` compares the logits of the first ones.
spread decode_us(step_ranks& ranks, uint32_t vocab, double seconds,
                 std::vector<std::vector<float>>& same) {
  decode d(vocab);
  bool first = same.empty();
  for (size_t i = 0; i < 8; ++i) {
    d.next(ranks);
    if (first) same.push_back(d.logits);
    check(same[i] == d.logits);
  }
  return spread_of(measure(1, seconds, [&](uint32_t) { d.next(ranks); }));
}

rank_groups groups_of(uint32_t rank, const grid_config& c, const std::string& over, rank_store& s) {
  auto joined = join_rank_groups({.epoch = 1,
                                  .group = "bench",
                                  .rank = rank,
                                  .size = c.ranks.tensor * c.ranks.pipeline,
                                  .secret = key_bytes(32),
                                  .protected_link = over == "gloo",
                                  .spin = true},
                                 c.ranks, s);
  check(bool(joined));
  return *std::move(joined);
}

void report_decode(const std::string& model, const std::string& over, uint32_t tensor,
                   const spread& t) {
  fmt::print(
      "{{\"what\":\"decode_step\",\"model\":\"{}\",\"over\":\"{}\",\"tensor\":{},\"us\":{:.1f},"
      "\"us_p10\":{:.1f},\"us_p90\":{:.1f}}}\n",
      std::filesystem::path(model).stem().string(), over, tensor, t.median, t.p10, t.p90);
  std::fflush(stdout);
}

int run_model(const std::string& path, const settings& s) {
  auto file = checkpoint::open(path);
  if (!file) return fmt::print(stderr, "{}\n", file.why().text), 1;
  auto model = loaded_model::load(*file, {});
  if (!model) return fmt::print(stderr, "{}\n", model.why().text), 1;
  const model_weights& w = (*model)->weights();
  std::vector<std::vector<float>> same;
  for (uint32_t tensor : {1u, 2u}) {
    grid_config c{.ranks = {tensor, 1}, .row = &best_cpu_row(), .pages = 4, .step_tokens = 4};
    go_anywhere();
    auto g = grid::start(w, c);
    check(bool(g));
    report_decode(path, "local", tensor, decode_us(**g, w.shape.vocab, s.seconds * 5, same));
  }
  for (std::string over : {"gloo", "gloo sealed"}) {
    stay_on_core(0);
    grid_config c{.ranks = {2, 1}, .row = &best_cpu_row(), .pages = 4, .step_tokens = 4};
    memory_rank_store store;
    std::thread other([&] {
      stay_on_core(1);
      check(bool(serve_rank(w, c, groups_of(1, c, over, store), true)));
    });
    {
      auto leads = process_ranks::start(w, c, groups_of(0, c, over, store), true);
      check(bool(leads));
      report_decode(path, over, 2, decode_us(**leads, w.shape.vocab, s.seconds * 5, same));
    }
    other.join();
  }
  return 0;
}

int run(const settings& s) {
  for (size_t bytes = 4; bytes <= size_t{4} << 20; bytes *= 16) {
    double socket = socket_us(bytes, s.seconds), copy = copy_us(bytes, s.seconds / 3);
    for (std::string over : {"local", "gloo", "gloo sealed"}) {
      ends group = make_group(over, s);
      if (!adds_right(group, bytes / 4)) return fmt::print(stderr, "{} adds wrongly\n", over), 1;
      std::vector<std::vector<float>> rows(s.ranks, std::vector<float>(bytes / 4));
      auto us = measure(s.ranks, s.seconds,
                        [&](uint32_t r) { check(bool(group[r]->all_reduce(rows[r]))); });
      auto t = spread_of(us);
      double limit = limit_us(over, socket, copy);
      fmt::print(
          "{{\"what\":\"all_reduce\",\"over\":\"{}\",\"ranks\":{},\"spin\":{},\"bytes\":{},"
          "\"us\":{:.2f},\"us_p10\":{:.2f},\"us_p90\":{:.2f},\"gb_per_s\":{:.3f},"
          "\"limit_us\":{:.2f},\"of_limit\":{:.2f}}}\n",
          over, s.ranks, s.spin, bytes, t.median, t.p10, t.p90, double(bytes) / t.median / 1000,
          limit, limit / t.median);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures adding up across ranks, by kind of communicator and by size",
               "comm_bench"};
  lethe::bench::settings s;
  bool asleep = false;
  std::vector<std::string> models;
  app.add_option("MODEL", models, "folders or GGUF files: their decode steps, too");
  app.add_option("--ranks", s.ranks)->check(CLI::Range(2u, 8u));
  app.add_flag("--asleep", asleep, "ranks wait without spinning");
  app.add_option("--seconds", s.seconds, "for each number")->check(CLI::Range(0.05, 10.0));
  CLI11_PARSE(app, argc, argv);
  s.spin = !asleep;
  int failed = lethe::bench::run(s);
  for (const std::string& model : models)
    if (failed == 0) failed = lethe::bench::run_model(model, s);
  return failed;
}
