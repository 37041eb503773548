#include "runtime/audit/small_client.hpp"

namespace lethe::audit {

namespace {

struct no_ears final : inner_sink {
  bool head(uint32_t, std::span<const bhttp_field>) override { return true; }
  bool content(std::string_view) override { return true; }
};

}  // namespace

small_client::small_client(const small_cluster& cluster, trust_file trust,
                           std::vector<private_token> tokens, std::unique_ptr<http_client> http)
    : cluster_(cluster),
      trust_(std::move(trust)),
      tokens_(std::move(tokens)),
      http_(std::move(http)),
      channel_(*http_, trust_.relays, trust_.origin) {}

result<std::unique_ptr<small_client>> small_client::start(const small_cluster& cluster,
                                                          uint32_t user,
                                                          std::vector<private_token> tokens) {
  auto http = http_client::start({}, {});
  if (!http) return http.why();
  std::unique_ptr<small_client> made(new small_client(
      cluster, cluster.trust(user, cluster.new_home()), std::move(tokens), *std::move(http)));
  auto view = cluster_view::open(made->trust_, made->channel_);
  if (!view) return view.why();
  made->view_ = *std::move(view);
  if (auto ok = made->refill(); !ok) return ok.why();
  return made;
}

result<void> small_client::refill() {
  wallet_.reset();
  std::error_code ignored;
  for (const char* ending : {"", ".journal"})
    std::filesystem::remove(trust_.wallet.string() + ending, ignored);
  auto opened = wallet::open(trust_.wallet);
  if (!opened) return opened.why();
  wallet_ = *std::move(opened);
  return tokens_.empty() ? result<void>() : wallet_->add(tokens_);
}

private_answer small_client::ask_as_new(std::string_view body, std::stop_token stop) {
  exposure_budget unaware;
  return ask_with(unaware, body, std::move(stop), {});
}

private_answer small_client::ask_with(exposure_budget& exposure, std::string_view body,
                                      std::stop_token stop, const call_observer& seen) {
  no_ears sink;
  const call_parts parts{*view_,
                         channel_,
                         *wallet_,
                         exposure,
                         [this] { return cluster_.now_s.load(); },
                         [this] { return cluster_.now_s.load(); },
                         0};
  return call_privately(parts, {.path = "/v1/chat/completions",
                                .body = body,
                                .sink = sink,
                                .stop = std::move(stop),
                                .observer = seen});
}

}  // namespace lethe::audit
