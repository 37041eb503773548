#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>

#include "actors/cli/commands.hpp"
#include "actors/cli/private_session.hpp"
#include "runtime/client/local_proxy.hpp"

namespace lethe {

namespace {

/// Until Ctrl-C or SIGTERM, which threads that are made later inherit blocked.
class until_told {
 public:
  until_told() {
    sigemptyset(&set_);
    for (int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, s);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void wait() const {
    int which = 0;
    sigwait(&set_, &which);
  }

 private:
  sigset_t set_;
};

/// What was checked of each call, on standard error: a line a call, or one a step. No content.
class proxy_log {
 public:
  explicit proxy_log(bool every_step) : every_step_(every_step) {}

  void tell(uint64_t call, const check_step& step) {
    std::lock_guard lock(mutex_);
    if (step.name == "call") return end(call, step);
    if (every_step_)
      fmt::print(stderr, "call {}  {:<6} {:<14} {}\n", call, step.ok ? "ok" : "FAILED", step.name,
                 step.detail);
    else
      note(checked_[call], step);
  }

 private:
  /// Steps that several draws repeat are named once.
  static void note(std::string& names, const check_step& step) {
    auto name = step.ok ? step.name : step.name + " FAILED";
    if (names.find(name) != names.npos) return;
    names += (names.empty() ? "" : ", ") + name;
  }
  void end(uint64_t call, const check_step& step) {
    auto checked = checked_.extract(call);
    fmt::print(stderr, "call {}  {:<6} {}{}\n", call, step.ok ? "ok" : "FAILED",
               checked ? "checked " + checked.mapped() + "; " : "", step.detail);
  }

  const bool every_step_;
  std::mutex mutex_;
  std::map<uint64_t, std::string> checked_;
};

/// How a client that started while nothing was reached got on.
class later_looks {
 public:
  void tell(const call_end& how) {
    if (how) fmt::print(stderr, "lethe: relay and gateway are reached\n");
    if (how || may_pass(how)) return;
    code_ = refuse(how.why.text);
    kill(getpid(), SIGTERM);
  }
  int code() const { return code_; }

 private:
  std::atomic<int> code_{0};
};

void say_stock(private_client& client) {
  auto n = client.count();
  fmt::print(
      stderr,
      "lethe: {} tokens in the wallet; some hours after there is less than one batch ({}), or "
      "soon after there is half, the next is bought\n",
      n.tokens, n.batch);
}

int serve(const std::string& trust, const std::string& address, uint32_t calls, bool explain) {
  until_told end;
  later_looks looks;
  auto client = open_private(trust,
                             {.keeps_stocked = true,
                              .starts_unreached = true,
                              .on_look = [&looks](const call_end& how) { looks.tell(how); }},
                             explain);
  if (!client) return refuse(client.end.why.text);
  proxy_log log(explain);
  auto proxy =
      local_proxy::start(**client, address, calls,
                         [&log](uint64_t call, const check_step& step) { log.tell(call, step); });
  if (!proxy) return refuse(proxy.why().text);
  for (const auto& at : (*proxy)->bound()) fmt::print("listening proxy http://{}/v1\n", at.address);
  std::fflush(stdout);
  if (const auto& first = (*client)->first_look(); first)
    say_stock(**client);
  else
    fmt::print(stderr,
               "lethe: {}; it goes on trying, and applications get a 502 or 503 until then\n",
               first.why.text);
  end.wait();
  return looks.code();
}

}  // namespace

void add_proxy(CLI::App& app, int& exit_code) {
  auto* proxies = app.add_subcommand(
      "proxy", "OpenAI's API on this machine, by the private path: for any SDK, unchanged");
  auto trust = std::make_shared<std::string>();
  auto address = std::make_shared<std::string>("127.0.0.1:8089");
  auto calls = std::make_shared<uint32_t>(32);
  auto explain = std::make_shared<bool>(false);
  proxies->add_option("TRUST", *trust, "the trust file; lethe keys public prints one")->required();
  proxies->add_option("--listen", *address, "ADDRESS:PORT, loopback only")->capture_default_str();
  proxies->add_option("--calls", *calls, "that run at once; as many wait")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  proxies->add_flag("--explain", *explain,
                    "log each step of each call; without it a line a call says what was checked");
  proxies->footer(
      "Tokens, relay, log, node choice and receipts happen behind it. A body is shown to at most\n"
      "1 + r nodes within ten minutes, an SDK's own retries included; then the answer is a 400,\n"
      "which SDKs don't retry. Ctrl-C or SIGTERM ends it.\n"
      "Example:\n"
      "  lethe proxy client.toml &\n"
      "  OPENAI_BASE_URL=http://127.0.0.1:8089/v1 OPENAI_API_KEY=none my-application");
  proxies->callback([=, &exit_code] { exit_code = serve(*trust, *address, *calls, *explain); });
}

}  // namespace lethe
