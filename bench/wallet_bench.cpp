// What a client's wallet allows: calls a second, each of which takes a token and forgets it, by one
// thread and by sixteen, against nothing but a page written and fdatasync in the same folder. They
// take turns, so that what else the machine does meets all. What is taken is checked first.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "runtime/client/wallet.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/token/token_issuer.hpp"

namespace lethe {
namespace {

using steady = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr size_t page_bytes = 4096, pages = 256;
constexpr uint32_t threads_max = 16, calls = 64;

double ms_since(steady::time_point begin) {
  return std::chrono::duration<double, std::milli>(steady::now() - begin).count();
}

struct one_wallet {
  one_wallet(const fs::path& folder, const token_key& k) : file(folder / "wallet"), key(k) {}

  void open() {
    tokens.reset();
    auto made = wallet::open(file);
    check(bool(made));
    tokens = *std::move(made);
  }
  void stock(size_t count) {
    std::vector<private_token> made(count, {.challenge_digest = digest, .key_id = key.id()});
    for (auto& t : made) fill_random(t.nonce);
    check(bool(tokens->add(made)));
  }
  /// Milliseconds until the token may leave.
  double call(hash32* nonce = nullptr) {
    const auto begin = steady::now();
    auto taken = tokens->take(key, digest);
    const double ms = ms_since(begin);
    check(taken && *taken && tokens->forget((*taken)->token.nonce));
    if (nonce) *nonce = (*taken)->token.nonce;
    return ms;
  }

  const hash32 digest = sha256({as_bytes("what the tokens are for")});
  fs::path file;
  const token_key& key;
  std::unique_ptr<wallet> tokens;
};

void check_answers(one_wallet& w) {
  w.open();
  w.stock(calls);
  std::set<hash32> seen;
  for (uint32_t i = 0; i < calls; ++i) {
    if (i % 16 == 0) w.open();
    hash32 nonce;
    w.call(&nonce);
    check(seen.insert(nonce).second);
    check(w.tokens->count() == wallet::numbers{calls - 1 - i, 0});
  }
}

double at(std::vector<double> of, double share) {
  std::ranges::sort(of);
  return of[size_t(share * double(of.size() - 1))];
}

/// One kind of slice, of each round one.
struct slices {
  const char* name;
  std::vector<double> rates, waits_ms;

  void print(const slices& bare) const {
    fmt::print(
        "{{\"what\": \"{}\", \"per_s\": {:.0f}, \"p10\": {:.0f}, \"p90\": {:.0f}, \"to_bare\": "
        "{:.2f}, \"wait_ms\": {:.2f}, \"wait_ms_p90\": {:.2f}}}\n",
        name, at(rates, 0.5), at(rates, 0.1), at(rates, 0.9), at(rates, 0.5) / at(bare.rates, 0.5),
        at(waits_ms, 0.5), at(waits_ms, 0.9));
  }
};

void bare_slice(int fd, slices& into) {
  static uint64_t page = 0;
  const std::vector<char> bytes(page_bytes, 'x');
  const auto begin = steady::now();
  for (uint32_t i = 0; i < calls; ++i) {
    const auto one = steady::now();
    check(::pwrite(fd, bytes.data(), page_bytes, off_t(page++ % pages * page_bytes)) ==
          ssize_t(page_bytes));
    check(::fdatasync(fd) == 0);
    into.waits_ms.push_back(ms_since(one));
  }
  into.rates.push_back(calls * 1000.0 / ms_since(begin));
}

void wallet_slice(one_wallet& w, uint32_t at_once, slices& into) {
  w.stock(size_t{calls} * at_once);
  std::vector<std::vector<double>> waits(at_once);
  std::vector<std::thread> callers;
  const auto begin = steady::now();
  for (auto& mine : waits)
    callers.emplace_back([&] {
      for (uint32_t i = 0; i < calls; ++i) mine.push_back(w.call());
    });
  for (auto& c : callers) c.join();
  into.rates.push_back(calls * at_once * 1000.0 / ms_since(begin));
  for (const auto& mine : waits)
    into.waits_ms.insert(into.waits_ms.end(), mine.begin(), mine.end());
}

int measure(const fs::path& folder, uint32_t rounds) {
  const issuer_key issuer = issuer_key::make();
  one_wallet w(folder, issuer.published());
  check_answers(w);
  const int fd = ::open((folder / "bare").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  check(fd >= 0);
  const std::vector<char> zeroes(page_bytes * pages);
  check(::pwrite(fd, zeroes.data(), zeroes.size(), 0) == ssize_t(zeroes.size()) &&
        ::fsync(fd) == 0);
  slices bare{.name = "a page written and fdatasync"}, one{.name = "calls, 1 thread"},
      many{.name = "calls, 16 threads"};
  for (uint32_t i = 0; i < rounds; ++i) {
    bare_slice(fd, bare);
    wallet_slice(w, 1, one);
    wallet_slice(w, threads_max, many);
  }
  ::close(fd);
  for (const slices* s : {&bare, &one, &many}) s->print(bare);
  return 0;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app{"Measures how many calls a second a client's wallet allows", "wallet_bench"};
  std::string parent = ".";
  uint32_t rounds = 31;
  app.add_option("FOLDER", parent, "on the disk that is asked about")->capture_default_str();
  app.add_option("--rounds", rounds, "of one slice each")->check(CLI::Range(1u, 1000u));
  CLI11_PARSE(app, argc, argv);
  std::string folder = (std::filesystem::path(parent) / "wallet-bench-XXXXXX").string();
  lethe::check(::mkdtemp(folder.data()) != nullptr);
  const int code = lethe::measure(folder, rounds);
  std::filesystem::remove_all(folder);
  return code;
}
