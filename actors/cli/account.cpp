#include <fmt/chrono.h>
#include <fmt/format.h>

#include "actors/cli/commands.hpp"
#include "runtime/base/durable_file.hpp"
#include "runtime/config/check_config.hpp"
#include "runtime/issuer/issuer.hpp"

namespace lethe {

namespace {

/// What a file says of the accounts it sells to.
struct account_book {
  std::unique_ptr<account_store> store;
  uint32_t epoch = 0;  // of tokens, now
  uint32_t batch = 0;
};

result<account_book> open_book(const std::string& file) {
  auto checked = check_config(file, machine::here());
  for (const auto& problem : checked.config.problems()) fmt::print(stderr, "{}\n", problem);
  if (!checked.good()) return fail("{}: mend it first; no account was touched", file);
  if (!checked.config.get().hasIssuer())
    return fail("{}: has no [issuer]; accounts are an issuer's", file);
  auto i = checked.config.get().getIssuer();
  auto store = open_accounts(checked.config.resolve(i.getFolder().cStr()));
  if (!store) return store.why();
  return account_book{*std::move(store), uint32_t(unix_s() / i.getEpochS()), i.getBatch()};
}

void warn_of_small(uint32_t quota, uint32_t batch) {
  if (quota < batch)
    fmt::print(stderr, "lethe: a purchase has {} tokens: a quota of {} buys none\n", batch, quota);
}

int add(account_book& book, const std::string& name, uint32_t quota, const std::string& out) {
  std::error_code ignored;
  if (!out.empty() && std::filesystem::exists(out, ignored))
    return refuse(out + ": is there already, and may hold another secret; no account was made");
  auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  auto secret = book.store->add(name, quota, today);
  if (!secret) return refuse(secret.why().text);
  warn_of_small(quota, book.batch);
  if (!out.empty()) {
    auto text = std::string(as_text(secret->view())) + "\n";
    auto written = write_durable(out, as_bytes(text), 0600);
    if (written) return 0;
    fmt::print(stderr, "lethe: {}\n", written.why().text);
  }
  fmt::print(stderr, "lethe: {}'s secret follows; it is not shown again\n", name);
  std::fwrite(secret->view().data(), 1, secret->size(), stdout);
  std::fputc('\n', stdout);
  return 0;
}

int list(account_book& book) {
  auto all = book.store->list();
  if (!all) return refuse(all.why().text);
  fmt::print("{:<24} {:>10} {:>10}  {:<10}  {}\n", "NAME", "QUOTA", "BOUGHT", "ADDED", "STATE");
  for (const auto& a : *all) {
    auto used = book.store->used(a.name, book.epoch);
    if (!used) return refuse(used.why().text);
    fmt::print("{:<24} {:>10} {:>10}  {:%Y-%m-%d}  {}\n", a.name, a.quota, *used,
               std::chrono::system_clock::time_point(a.created), a.revoked ? "revoked" : "buys");
  }
  return 0;
}

int set_quota(account_book& book, const std::string& name, uint32_t quota) {
  auto done = book.store->set_quota(name, quota);
  if (!done) return refuse(done.why().text);
  warn_of_small(quota, book.batch);
  fmt::print("{} may buy {} tokens a token epoch\n", name, quota);
  return 0;
}

int revoke(account_book& book, const std::string& name) {
  auto done = book.store->revoke(name);
  if (!done) return refuse(done.why().text);
  fmt::print("{} buys nothing any more; tokens it has are good until their key retires\n", name);
  return 0;
}

struct account_words {
  std::string file, name, out;
  uint32_t quota = 0;
};

/// One of the subcommands: what all of them have, and what it does with the accounts.
CLI::App* add_one(CLI::App& to, const char* word, const char* help,
                  const std::shared_ptr<account_words>& words, int& exit_code,
                  std::function<int(account_book&)> act) {
  auto* one = to.add_subcommand(word, help);
  one->add_option("FILE", words->file, "the issuer's TOML file")->required();
  one->callback([words, act = std::move(act), &exit_code] {
    auto book = open_book(words->file);
    exit_code = book ? act(*book) : refuse(book.why().text);
  });
  return one;
}

}  // namespace

void add_account(CLI::App& app, int& exit_code) {
  auto* accounts = app.add_subcommand(
      "account", "Who may buy tokens from an issuer, and how many; whether or not it runs");
  accounts->require_subcommand(1);
  auto w = std::make_shared<account_words>();
  auto one = [&](const char* word, const char* help, auto act) {
    return add_one(*accounts, word, help, w, exit_code, act);
  };
  auto name = [&](CLI::App* to) {
    to->add_option("NAME", w->name, "1 to 64 letters of a-z 0-9 . _ -")->required();
  };
  constexpr const char* quota_help = "tokens that it may buy in a token epoch";

  auto* adds = one("add", "Add one; prints its secret, once",
                   [w](account_book& b) { return add(b, w->name, w->quota, w->out); });
  name(adds);
  adds->add_option("--quota", w->quota, quota_help)->required();
  adds->add_option("--out", w->out, "a new file for the secret, which its owner alone may read");
  adds->footer(
      "Its client sends the secret to buy; the issuer keeps only a hash of it.\n"
      "Example:\n  lethe account add configs/issuer.toml ann --quota 4096 --out account.secret");

  auto* lists = one("list", "All of them, and what they bought in this token epoch",
                    [](account_book& b) { return list(b); });
  lists->footer("Example:\n  lethe account list configs/issuer.toml");

  auto* quotas = one("quota", "Change how many tokens one may buy, from now on",
                     [w](account_book& b) { return set_quota(b, w->name, w->quota); });
  name(quotas);
  quotas->add_option("TOKENS", w->quota, quota_help)->required();
  quotas->footer("Example:\n  lethe account quota configs/issuer.toml ann 8192");

  auto* revokes = one("revoke", "It buys nothing any more, for good: its name is not given again",
                      [w](account_book& b) { return revoke(b, w->name); });
  name(revokes);
  revokes->footer("Example:\n  lethe account revoke configs/issuer.toml ann");
}

}  // namespace lethe
