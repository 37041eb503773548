#include "parallel/nccl_environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace lethe {
namespace {

using variables = std::map<std::string, std::string>;

variables read_by_nccl() {
  variables found;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    std::string_view word(*at);
    size_t equals = std::min(word.find('='), word.size());
    std::string_view name = word.substr(0, equals);
    if (is_nccl_variable(name)) found.emplace(name, word.substr(std::min(equals + 1, word.size())));
  }
  return found;
}

bool is_interface(std::string_view name) {
  return !name.empty() && name.size() < 16 && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

}  // namespace

result<variables> nccl_environment(const nccl_pins& pins) {
  if (!is_interface(pins.interface))
    return fail("nccl: \"{}\" is no network interface; name one of this host (ip link)",
                pins.interface);
  std::string channels = std::to_string(pins.staging.channels);
  return variables{
      // No listener, and no code that is found by a name.
      {"NCCL_RAS_ENABLE", "0"},
      {"NCCL_NET_PLUGIN", "none"},
      {"NCCL_TUNER_PLUGIN", "none"},
      {"NCCL_PROFILER_PLUGIN", "none"},
      {"NCCL_ENV_PLUGIN", "none"},
      {"NCCL_GIN_ENABLE", "0"},
      {"NCCL_NVTX_DISABLE", "1"},
      // Nothing is read but this, and what NCCL would print goes nowhere: we say what failed.
      {"NCCL_CONF_FILE", "/dev/null"},
      {"NCCL_DEBUG", "WARN"},
      {"NCCL_DEBUG_FILE", "/dev/null"},
      {"NCCL_SOCKET_IFNAME", "=" + pins.interface},
      // Calls of several groups run in the order in which they were made, or not at all.
      {"NCCL_LAUNCH_ORDER_IMPLICIT", "1"},
      {"NCCL_LAUNCH_RACE_FATAL", "1"},
      // One algorithm, over one set of buffers: the same sums in every run, and one place to wipe.
      {"NCCL_ALGO", "ring"},
      {"NCCL_PROTO", "simple"},
      {"NCCL_NVLS_ENABLE", "0"},
      {"NCCL_COLLNET_ENABLE", "0"},
      {"NCCL_BUFFSIZE", std::to_string(pins.staging.bytes)},
      {"NCCL_MIN_P2P_NCHANNELS", channels},
      {"NCCL_MAX_P2P_NCHANNELS", channels},
  };
}

/// Besides NCCL's own: what loads a library into whoever uses NVTX or CUDA.
bool is_nccl_variable(std::string_view name) {
  return name.starts_with("NCCL_") || name.starts_with("NVTX_INJECTION") ||
         name.starts_with("CUDA_INJECTION");
}

result<void> close_nccl_environment(const nccl_pins& pins, const char* site_file) {
  auto wanted = nccl_environment(pins);
  if (!wanted) return wanted.why();
  if (access(site_file, F_OK) == 0)
    return fail("nccl: {} is there, and NCCL would do as it says; remove it", site_file);
  for (const auto& [name, value] : read_by_nccl()) unsetenv(name.c_str());
  for (const auto& [name, value] : *wanted) setenv(name.c_str(), value.c_str(), 1);
  return check_nccl_environment(pins);
}

result<void> check_nccl_environment(const nccl_pins& pins) {
  auto wanted = nccl_environment(pins);
  if (!wanted) return wanted.why();
  variables there = read_by_nccl();
  for (const auto& [name, value] : there)
    if (!wanted->contains(name))
      return fail("nccl: {} was set behind our back; see who sets it", name);
  for (const auto& [name, value] : *wanted)
    if (!there.contains(name) || there[name] != value)
      return fail("nccl: {} was changed from {}; see who sets it", name, value);
  return {};
}

}  // namespace lethe
