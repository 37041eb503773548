#include "runtime/config/check_listeners.hpp"

#include <algorithm>

#include "runtime/config/api_keys.hpp"
#include "runtime/config/listener_text.hpp"

namespace lethe {

namespace {

void check_api(cluster_config& config) {
  auto listen = config.get().getListen();
  if (listen.getApi().size() == 0) return;
  auto api = listener_text::parse(listen.getApi().cStr());
  if (!api.valid)
    config.refuse("listen.api", "{}", listener_form);
  else if (!api.loopback)
    config.refuse("listen.api", "listens on loopback only: it carries prompts in the clear");
}

/// Only the leading host reads it, and the file may be checked elsewhere.
void check_api_keys(cluster_config& config, std::vector<std::string>& notes) {
  auto path = config.resolve(config.get().getListen().getApiKeys().cStr());
  auto keys = read_api_keys(config);
  if (keys) return;
  std::error_code ignored;
  bool elsewhere = config.get().getHosts().size() > 0 && !std::filesystem::exists(path, ignored);
  if (!elsewhere) return config.refuse("listen.api_keys", "{}", keys.why().text);
  notes.push_back(fmt::format("{} is not on this machine: the leading host won't start without it",
                              path.string()));
}

/// A host's own port; its address may be a name.
listener_text port_of(schema::Host::Reader host) {
  std::string address = host.getAddress().cStr();
  bool six = address.find(':') != address.npos;
  auto at = listener_text::parse(
      fmt::format("{}{}{}:{}", six ? "[" : "", address, six ? "]" : "", host.getPort()));
  if (!at.valid) at = {.address = address, .port = host.getPort()};
  return at;
}

struct named_listener {
  std::string key;
  listener_text at;
};

/// All that the leading host opens.
std::vector<named_listener> listeners_of(schema::Config::Reader c) {
  std::vector<named_listener> all;
  if (c.getHosts().size() > 0) all.push_back({"hosts[0].port", port_of(c.getHosts()[0])});
  auto add = [&](const char* key, capnp::Text::Reader text) {
    if (auto at = listener_text::parse(text.cStr()); at.valid) all.push_back({key, at});
  };
  add("listen.api", c.getListen().getApi());
  add("listen.metrics", c.getListen().getMetrics());
  add("gateway.listen", c.getGateway().getListen());
  return all;
}

/// Each is told of the first that it meets.
void refuse_pairs(cluster_config& config, const std::vector<named_listener>& all,
                  bool (*meet)(const listener_text&, const listener_text&)) {
  for (size_t i = 1; i < all.size(); ++i) {
    auto end = all.begin() + ptrdiff_t(i);
    auto first =
        std::find_if(all.begin(), end, [&](const auto& o) { return meet(all[i].at, o.at); });
    if (first != end)
      config.refuse(all[i].key, "{}:{} is taken by {}", all[i].at.address, all[i].at.port,
                    first->key);
  }
}

void check_ports(cluster_config& config) {
  refuse_pairs(config, listeners_of(config.get()),
               [](const auto& a, const auto& b) { return a.meets(b); });
  std::vector<named_listener> hosts;
  for (uint32_t i = 0; i < config.get().getHosts().size(); ++i)
    hosts.push_back({fmt::format("hosts[{}].port", i), port_of(config.get().getHosts()[i])});
  refuse_pairs(config, hosts, [](const auto& a, const auto& b) {
    return a.port != 0 && a.port == b.port && a.address == b.address;
  });
}

}  // namespace

void check_listeners(cluster_config& config, std::vector<std::string>& notes) {
  auto metrics = config.get().getListen().getMetrics();
  check_api(config);
  check_api_keys(config, notes);
  if (metrics.size() && !listener_text::parse(metrics.cStr()).valid)
    config.refuse("listen.metrics", "{}", listener_form);
  check_ports(config);
}

}  // namespace lethe
