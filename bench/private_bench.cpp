// The privacy tax: the same chats to the same engine by the plain interface on loopback and by the
// private path (tokens, relay, gateway, every check of a client), by turns in one run. They must
// say the same first. bench/private starts what this needs. Prints one line of JSON per
// measurement.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <sstream>

#include "bench/both_paths.hpp"
#include "runtime/crypto/ohttp_request.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/store/spend_store.hpp"
#include "runtime/token/token_client.hpp"
#include "runtime/token/token_issuer.hpp"

namespace lethe::bench {
namespace {

constexpr double ratio_aim = 0.98, more_ms_aim = 5;

/// Of a process and all its threads so far; 0 of one that isn't known.
double cpu_ms(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  double user = 0, system = 0;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system;
  return (user + system) * 1e3 / double(sysconf(_SC_CLK_TCK));
}

/// Processor time of whoever takes part.
struct cpu_times {
  double client = 0, relay = 0, cluster = 0;
  static cpu_times now(const options& o) {
    return {cpu_ms(getpid()), cpu_ms(o.relay_pid), cpu_ms(o.cluster_pid)};
  }
  double all() const { return client + relay + cluster; }
  void add(const cpu_times& from, const cpu_times& to) {
    client += to.client - from.client;
    relay += to.relay - from.relay;
    cluster += to.cluster - from.cluster;
  }
};

struct spread {
  double p10 = 0, median = 0, p90 = 0;
};
spread spread_of(std::vector<double> v) {
  check(!v.empty());
  std::ranges::sort(v);
  return {v[v.size() / 10], v[v.size() / 2], v[v.size() * 9 / 10]};
}
double median_of(const std::vector<double>& v) { return spread_of(v).median; }

bool same_words(both_paths& b, const options& o) {
  size_t words = 0;
  for (uint32_t streams : {1u, o.streams}) {
    const auto bodies = b.next_bodies(streams);
    double unused = 0;
    auto plain = b.say(b.by_plain(), bodies, streams, unused);
    auto hidden = b.say(b.by_private(), bodies, streams, unused);
    for (uint32_t i = 0; i < streams; ++i) {
      if (plain[i].said != hidden[i].said) return false;
      words += plain[i].said.size();
    }
  }
  return words > 0;
}

constexpr const char* part_names[] = {"draw",  "token", "seal",    "way_and_node",
                                      "first", "say",   "receipt", "end"};

void print_parts(const char* path, const std::vector<chat>& chats, uint32_t streams) {
  std::string line;
  for (const char* part : part_names) {
    std::vector<double> ms;
    for (const auto& c : chats)
      if (auto at = c.parts.find(part); at != c.parts.end() && !c.said.empty())
        ms.push_back(at->second);
    if (ms.empty()) continue;
    auto s = spread_of(ms);
    line += fmt::format(",\"{0}_ms\":{1:.2f},\"{0}_ms_p90\":{2:.2f},\"{0}_ms_most\":{3:.2f}", part,
                        s.median, s.p90, *std::ranges::max_element(ms));
  }
  fmt::print("{{\"what\":\"parts\",\"path\":\"{}\",\"streams\":{},\"calls\":{}{}}}\n", path,
             streams, chats.size(), line);
}

/// What all slices of one path took.
struct slices {
  std::vector<double> seconds;
  cpu_times cpu;
  std::vector<chat> chats;
};

/// Padding, receipts and the wallet's last notes are in the processor time; an answer's reader does
/// not wait for them.
void run_slice(both_paths& b, const path& by, const std::vector<std::string>& bodies,
               const options& o, slices& to) {
  const auto cpu = cpu_times::now(o);
  auto chats = b.say(by, bodies, o.streams, to.seconds.emplace_back());
  to.cpu.add(cpu, cpu_times::now(o));
  std::ranges::move(chats, std::back_inserter(to.chats));
}

void print_cpu(const char* path, const slices& s) {
  const double calls = double(s.chats.size());
  fmt::print(
      "{{\"what\":\"processor time of a call\",\"path\":\"{}\",\"client_ms\":{:.2f},"
      "\"relay_ms\":{:.2f},\"cluster_ms\":{:.2f}}}\n",
      path, s.cpu.client / calls, s.cpu.relay / calls, s.cpu.cluster / calls);
}

void throughput(both_paths& b, const options& o) {
  slices plain, hidden;
  std::vector<double> ratio;
  for (uint32_t i = 0; i < o.pairs; ++i) {
    b.stock(size_t{o.streams} * o.calls);
    const auto bodies = b.next_bodies(size_t{o.streams} * o.calls);
    if (i % 2 == 0) run_slice(b, b.by_private(), bodies, o, hidden);
    run_slice(b, b.by_plain(), bodies, o, plain);
    if (i % 2 == 1) run_slice(b, b.by_private(), bodies, o, hidden);
    ratio.push_back(plain.seconds.back() / hidden.seconds.back());
  }
  const double said = double(o.streams) * o.calls * o.tokens;
  auto r = spread_of(ratio);
  fmt::print(
      "{{\"what\":\"throughput\",\"streams\":{},\"tokens\":{},\"calls\":{},\"pairs\":{},"
      "\"plain_per_second\":{:.1f},\"private_per_second\":{:.1f},\"ratio\":{:.4f},"
      "\"ratio_p10\":{:.3f},\"ratio_p90\":{:.3f},\"cpu_ratio\":{:.3f},\"aim\":{:.2f}}}\n",
      o.streams, o.tokens, o.calls, o.pairs, said / median_of(plain.seconds),
      said / median_of(hidden.seconds), r.median, r.p10, r.p90, plain.cpu.all() / hidden.cpu.all(),
      ratio_aim);
  print_cpu("plain", plain);
  print_cpu("private", hidden);
  print_parts("plain", plain.chats, o.streams);
  print_parts("private", hidden.chats, o.streams);
}

/// Random weights may say nothing for a while: such a body is left out of both.
void first_word(both_paths& b, const options& o) {
  constexpr uint32_t tokens = 8;
  std::vector<double> plain, hidden, more;
  std::vector<chat> plain_chats, hidden_chats;
  for (uint32_t i = 0; plain.size() < o.first; ++i) {
    if (i == 8 * o.first) give_up("the model says too little");
    b.stock(1);
    const std::string body = b.next_body(tokens);
    auto once = [&](const path& by) { return by(body, [] {}); };
    chat with, without;
    if (i % 2 == 0) with = once(b.by_private());
    without = once(b.by_plain());
    if (i % 2 == 1) with = once(b.by_private());
    if (with.said.empty()) continue;
    plain.push_back(without.first_ms);
    hidden.push_back(with.first_ms);
    more.push_back(with.first_ms - without.first_ms);
    plain_chats.push_back(std::move(without));
    hidden_chats.push_back(std::move(with));
  }
  auto p = spread_of(plain), h = spread_of(hidden), m = spread_of(more);
  fmt::print(
      "{{\"what\":\"first word\",\"calls\":{},\"plain_ms\":{:.2f},\"plain_ms_p10\":{:.2f},"
      "\"plain_ms_p90\":{:.2f},\"private_ms\":{:.2f},\"private_ms_p10\":{:.2f},"
      "\"private_ms_p90\":{:.2f},\"more_ms\":{:.2f},\"more_ms_p10\":{:.2f},\"more_ms_p90\":{:.2f},"
      "\"aim_ms\":{:.0f}}}\n",
      o.first, p.median, p.p10, p.p90, h.median, h.p10, h.p90, m.median, m.p10, m.p90, more_ms_aim);
  print_parts("plain", plain_chats, 1);
  print_parts("private", hidden_chats, 1);
}

spread time_ms(uint32_t times, const std::function<void()>& call) {
  std::vector<double> ms;
  for (uint32_t i = 0; i < times; ++i) {
    const auto begin = steady::now();
    call();
    if (i > 0) ms.push_back(ms_between(begin, steady::now()));
  }
  return spread_of(ms);
}

void print_time(const char* what, spread s) {
  fmt::print("{{\"what\":\"{}\",\"ms\":{:.3f},\"ms_p10\":{:.3f},\"ms_p90\":{:.3f}}}\n", what,
             s.median, s.p10, s.p90);
}

/// There and back without token or node: outer layer sealed, opened, answered, and that opened.
void looks(both_paths& b, const options& o) {
  auto client = http_client::start(patient, {});
  auto state = b.client().state();
  if (!client || !state) give_up("the cluster's state is gone");
  auto through = [&](const char* what, const std::vector<server_at>& servers) {
    oblivious_channel channel(**client, servers, b.client().trust().origin);
    print_time(what, time_ms(o.first + 1, [&] {
                 auto got =
                     channel.ask_whole((*state)->gateway_key, {.path = "/checkpoint"}, 1 << 16);
                 if (!got || got->status != 200) give_up("the log does not show its head");
               }));
  };
  through("look, relay and gateway", b.client().trust().relays);
  if (o.gateway.empty()) return;
  auto direct = server_at::from_url(o.gateway);
  if (!direct) give_up(direct.why().text);
  through("look, gateway", {*direct});
}

/// The gateway's store and the client's wallet, each alone, on the disk that both use.
void disk(const options& o) {
  auto ledger = open_sqlite_spends({.file = std::filesystem::path(o.folder) / "bench-spends.db"});
  if (!ledger) give_up(ledger.why().text);
  spend_store store(*std::move(ledger));
  auto spend = [&](uint32_t at_once) {
    std::latch durable(at_once);
    for (uint32_t i = 0; i < at_once; ++i) {
      token_id token;
      fill_random(token.nonce);
      check(store.spend(token, {}, [&](const result<spend_answer>& how) {
        check(how && *how == spend_answer::fresh);
        durable.count_down();
      }));
    }
    durable.wait();
  };
  print_time("spend", time_ms(o.first + 1, [&] { spend(1); }));
  print_time("spends of all streams", time_ms(o.first + 1, [&] { spend(o.streams); }));
}

/// What a gateway computes for a small request before it spends, on its one thread.
void opening(const options& o) {
  auto keys = ohttp_keys::make({});
  token_issuer issuer;
  check(keys && issuer.add(issuer_key::make(), 0));
  const ohttp_config to = read_ohttp_keys(keys->published())->front();
  const hash32 challenge{};
  const token_key& key = *issuer.current(0);
  auto purchase = token_purchase::make(key, challenge, 1);
  auto bought = purchase->finish(key, issuer.answer_batch(purchase->request(), 0).body);
  check(bought && bought->tokens.size() == 1);
  std::vector<std::byte> plain(3 << 10);
  std::vector<std::vector<std::byte>> sealed(o.first + 1);
  for (auto& message : sealed) {
    auto sealer = ohttp_request_sealer::make(to, ohttp_form::chunked);
    check(sealer && sealer->seal(plain, true, message));
  }
  print_time("decapsulation", time_ms(o.first + 1, [&, i = 0]() mutable {
               std::pmr::string opened;
               ohttp_request_opener opener(*keys, ohttp_form::chunked, 0);
               check(opener.push(sealed[size_t(i++)], opened) && opener.finish(opened));
             }));
  print_time("token verified", time_ms(o.first + 1, [&] {
               check(bool(verify_token(bought->tokens[0], key, challenge)));
             }));
}

int measure(const options& o) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  both_paths b(o);
  b.stock(o.streams + 2);
  if (!same_words(b, o)) give_up("the private path says something else than the plain one");
  first_word(b, o);
  throughput(b, o);
  looks(b, o);
  disk(o);
  opening(o);
  return 0;
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures what the private path takes beside the plain one", "private_bench"};
  lethe::bench::options o;
  app.add_option("API", o.api, "URL of the plain interface")->required();
  app.add_option("TRUST", o.trust, "a client's trust file for the same cluster")->required();
  app.add_option("--gateway", o.gateway, "its URL, to be asked without the relay, too");
  app.add_option("--folder", o.folder, "for a store of spent tokens, where the gateway has its own")
      ->required();
  app.add_option("--cluster-pid", o.cluster_pid, "whose processor time is told");
  app.add_option("--relay-pid", o.relay_pid, "the same");
  app.add_option("--name", o.name, "of the model");
  app.add_option("--streams", o.streams, "at once")->check(CLI::Range(1u, 64u));
  app.add_option("--tokens", o.tokens, "of each answer")->check(CLI::Range(4u, 4096u));
  app.add_option("--calls", o.calls, "of each stream in a slice, one after the other")
      ->check(CLI::Range(1u, 100u));
  app.add_option("--pairs", o.pairs, "of slices")->check(CLI::Range(1u, 10'000u));
  app.add_option("--first", o.first, "pairs of calls of one stream")->check(CLI::Range(10u, 1000u));
  CLI11_PARSE(app, argc, argv);
  return lethe::bench::measure(o);
}
