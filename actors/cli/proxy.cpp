#include <fmt/format.h>
#include <signal.h>

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

int serve(const std::string& trust, const std::string& address, uint32_t calls) {
  until_told end;
  auto client = open_private(trust, {.keeps_stocked = true});
  if (!client) return refuse(client.end.why.text);
  auto n = (*client)->count();
  auto proxy = local_proxy::start(**client, address, calls, [](const error& why) {
    fmt::print(stderr, "lethe: an answer was handed on that its node did not prove: {}\n",
               why.text);
  });
  if (!proxy) return refuse(proxy.why().text);
  for (const auto& at : (*proxy)->bound()) fmt::print("listening proxy http://{}/v1\n", at.address);
  std::fflush(stdout);
  fmt::print(stderr,
             "lethe: {} tokens in the wallet; when there is less than one batch ({}), the next is "
             "bought on a timer\n",
             n.tokens, n.batch);
  end.wait();
  return 0;
}

}  // namespace

void add_proxy(CLI::App& app, int& exit_code) {
  auto* proxies = app.add_subcommand(
      "proxy", "OpenAI's API on this machine, by the private path: for any SDK, unchanged");
  auto trust = std::make_shared<std::string>();
  auto address = std::make_shared<std::string>("127.0.0.1:8089");
  auto calls = std::make_shared<uint32_t>(32);
  proxies->add_option("TRUST", *trust, "the trust file; lethe keys public prints one")->required();
  proxies->add_option("--listen", *address, "ADDRESS:PORT, loopback only")->capture_default_str();
  proxies->add_option("--calls", *calls, "that run at once; as many wait")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  proxies->footer(
      "Tokens, relay, log, node choice and receipts happen behind it. A body is shown to at most\n"
      "1 + r nodes within ten minutes, an SDK's own retries included; then the answer is a 400,\n"
      "which SDKs don't retry. Ctrl-C or SIGTERM ends it.\n"
      "Example:\n"
      "  lethe proxy client.toml &\n"
      "  OPENAI_BASE_URL=http://127.0.0.1:8089/v1 OPENAI_API_KEY=none my-application");
  proxies->callback([=, &exit_code] { exit_code = serve(*trust, *address, *calls); });
}

}  // namespace lethe
