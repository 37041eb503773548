#include "actors/audit/embedded_cluster.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <thread>

namespace lethe::audit {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds start_patience{60};
constexpr unsigned batch = 128, quota = 4096;

class kept final : public inner_sink {
 public:
  kept(said& to, const std::function<bool()>& began) : to_(to), began_(began) {}
  bool head(uint32_t status, std::span<const bhttp_field>) override {
    to_.status = status;
    return true;
  }
  bool content(std::string_view piece) override {
    to_.body += piece;
    return !began_ || began_();
  }

 private:
  said& to_;
  const std::function<bool()>& began_;
};

}  // namespace

result<std::unique_ptr<embedded_cluster>> embedded_cluster::start(
    const embedded_settings& settings) {
  auto folder = temporary_folder::make("lethe-audit");
  if (!folder) return folder.why();
  std::unique_ptr<embedded_cluster> c(new embedded_cluster(settings, *std::move(folder)));
  if (auto up = c->start_all(); !up) return up.why();
  return c;
}

result<void> embedded_cluster::start_part(std::unique_ptr<child>& part, const std::string& file) {
  auto started = child::start({settings_.program, "up", file}, (folder() / "run").string());
  if (!started) return started.why();
  part = *std::move(started);
  if (part->tells("ready: ", start_patience)) return {};
  return fail("{} does not come up:\n{}", file, part->err());
}

result<void> embedded_cluster::start_all() {
  fs::create_directory(folder() / "run");
  auto file = folder_.write(
      "issuer.toml",
      fmt::format("name = \"issuer\"\n[issuer]\nlisten = \"127.0.0.1:0\"\nfolder = \"issuer\"\n"
                  "secret = \"gateway.secret\"\nbatch = {}\n",
                  batch));
  if (!file) return file.why();
  if (auto up = start_part(issuer_, *file); !up) return up.why();
  auto issuer = issuer_->url("issuer", start_patience);
  if (!issuer) return issuer.why();
  auto account = command({"account", "add", *file, "auditor", "--quota", std::to_string(quota),
                          "--out", (folder() / "account.secret").string()});
  if (!account) return account.why();
  auto gateway = folder_.write(
      "gateway.toml",
      fmt::format(
          "name = \"audited\"\nprofile = \"{}\"\n[model]\npath = \"{}\"\nname = "
          "\"{}\"\n[engines]\ncount = {}\ntensor = {}\n"
          "processes = \"{}\"\n[batching]\nrunning = 4\nkv_memory = \"32 "
          "MiB\"\n[health]\nlost_after_ms = 60000\n[shape]\n"
          "mode = \"{}\"\n[gateway]\nlisten = \"127.0.0.1:0\"\nfolder = \"gateway\"\n"
          "issuer = \"{}\"\nissuer_secret = \"gateway.secret\"\ntoken_batch = {}\nepoch_s = {}\n"
          "grace_s = {}\n",
          settings_.profile, fs::absolute(settings_.model).string(), model_name, settings_.engines,
          settings_.ranks, settings_.ranks > 1 ? "ranks" : "separate", settings_.shape, *issuer,
          batch, settings_.epoch_s, settings_.grace_s));
  if (!gateway) return gateway.why();
  gateway_file_ = *gateway;
  if (auto up = start_part(gateway_, gateway_file_); !up) return up.why();
  auto gateway_url = gateway_->url("gateway", start_patience);
  if (!gateway_url) return gateway_url.why();
  auto relay = folder_.write(
      "relay.toml",
      fmt::format("name = \"relay\"\n[relay]\nlisten = \"127.0.0.1:0\"\ngateway = \"{}/\"\n",
                  *gateway_url));
  if (!relay) return relay.why();
  if (auto up = start_part(relay_, *relay); !up) return up.why();
  auto by = this->relay();
  if (!by) return by.why();
  auto client = new_client("client", *by);
  if (!client) return client.why();
  client_ = *std::move(client);
  return {};
}

result<std::unique_ptr<private_client>> embedded_cluster::new_client(
    const std::string& name, const std::string& relay) const {
  auto trust = command({"keys", "public", gateway_file_, "--relay", relay});
  if (!trust) return trust.why();
  std::error_code failed;
  fs::create_directory(folder() / name, failed);
  if (!failed)
    fs::copy_file(folder() / "account.secret", folder() / name / "account.secret", failed);
  if (failed) return fail("{}: {}", (folder() / name).string(), failed.message());
  auto file = folder_.write(name + "/trust.toml", *trust);
  if (!file) return file.why();
  std::string why = "it has no roster yet";
  const auto until = std::chrono::steady_clock::now() + start_patience;
  while (std::chrono::steady_clock::now() < until) {
    auto client = private_client::start(fs::path(*file), {.on_a_timer = false});
    if (client) {
      if (auto bought = (*client)->buy(); !bought)
        return fail("no tokens: {}", bought.end.why.text);
      return std::move(*client);
    }
    why = client.end.why.text;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return fail("no client comes in: {}", why);
}

said ask(private_client& client, const std::string& body, const std::string& path,
         std::function<bool()> began) {
  said s;
  if (client.count().tokens == 0)
    if (auto more = client.buy(); !more) {
      s.why = more.end.why.text;
      return s;
    }
  kept sink(s, began);
  auto answer = client.call({.path = path, .body = body, .sink = sink});
  s.proof = answer.proof;
  if (!answer) s.why = answer.why.text;
  return s;
}

result<std::shared_ptr<const cluster_state>> embedded_cluster::state() {
  auto now = client_->state();
  if (!now) return now.end.why;
  return *std::move(now);
}

result<std::string> embedded_cluster::relay() const { return relay_->url("relay", start_patience); }

std::vector<pid_t> embedded_cluster::processes() const {
  std::vector<pid_t> all;
  for (auto* part : {&issuer_, &gateway_, &relay_})
    if ((*part)->is_running())
      for (pid_t p : family_of((*part)->pid())) all.push_back(p);
  return all;
}

memory_search embedded_cluster::search(const needle_finder& finder,
                                       const std::vector<fs::path>& folders) const {
  memory_search found(finder);
  found.stopped_processes(processes(), folders);
  return found;
}

std::vector<trace_of> soon_left(const std::function<std::vector<trace_of>()>& search) {
  auto left = search();
  for (int i = 0; i < 100 && !left.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    left = search();
  }
  return left;
}

std::vector<pid_t> embedded_cluster::engines() const {
  auto all = family_of(gateway_->pid());
  return {all.begin() + 1, all.end()};
}

bool embedded_cluster::is_whole(std::chrono::seconds patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    auto status = command({"status", "--json", "--cluster", gateway_file_});
    size_t ready = 0;
    if (status)
      for (size_t at = 0; (at = status->find("\"phase\":\"ready\"", at)) != status->npos; ++at)
        ++ready;
    if (ready == settings_.engines) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

void embedded_cluster::drain() { ::kill(gateway_->pid(), SIGTERM); }
bool embedded_cluster::drained(std::chrono::seconds patience) {
  return gateway_->wait(patience) == 0;
}

result<std::string> embedded_cluster::command(std::vector<std::string> words) const {
  words.insert(words.begin(), settings_.program);
  return run_child(words, (folder() / "run").string());
}

}  // namespace lethe::audit
