#include "actors/audit/no_node_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include <thread>

#include "runtime/base/owned_fd.hpp"
#include "runtime/crypto/dhkem.hpp"

namespace lethe::audit {

namespace {

constexpr unsigned epoch_s = 8, grace_s = 1;
constexpr size_t key_bytes_each = 32, beside_bytes = 256;
constexpr std::chrono::seconds patience{60};
constexpr int takes_max = 5;

/// Bytes of another process, as many as can be read.
std::string read_of(pid_t pid, uint64_t at, size_t bytes) {
  std::string read(bytes, '\0');
  const owned_fd fd(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = ::pread(fd.get(), read.data(), bytes, off_t(at));
  read.resize(got > 0 ? size_t(got) : 0);
  return read;
}

bool is_private_key_of(bytes_view published, std::string_view bytes) {
  if (bytes.size() != key_bytes_each) return false;
  auto key = hpke_key::from_private(hpke_key::kem_x25519, as_bytes(bytes));
  return key && std::ranges::equal(key->public_key(), published);
}

/// Whoever reads the memory of a node knows its public key: beside each copy of that lie addresses,
/// and one of them is the private key's.
std::optional<std::string> taken_from(const std::vector<pid_t>& engines, bytes_view published) {
  const needle_finder finder({{"public key", std::string(as_text(published))}});
  const stopped quiet(engines);
  memory_search found(finder);
  for (pid_t p : engines) found.process(p);
  for (const auto& t : found.traces()) {
    const auto beside = read_of(t.pid, t.at / 8 * 8, beside_bytes);
    for (size_t i = 0; i + 8 <= beside.size(); i += 8) {
      uint64_t at = 0;
      std::memcpy(&at, beside.data() + i, sizeof at);
      auto bytes = read_of(t.pid, at, key_bytes_each);
      if (is_private_key_of(published, bytes)) return bytes;
    }
  }
  return {};
}

/// Until a roster with other keys is out, and the grace of the last is over.
bool outlive(embedded_cluster& on, uint32_t epoch) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    auto state = on.state();
    if (state && (*state)->nodes.epoch > epoch) {
      std::this_thread::sleep_for(std::chrono::seconds(grace_s));
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return false;
}

/// A key while it is there, and where else it lay.
struct taken_key {
  uint32_t epoch = 0;
  std::string bytes;
  size_t traces = 0;
};

/// An epoch may end while its key is looked for: then the next one's.
result<taken_key> take_key(embedded_cluster& on) {
  for (int i = 0; i < takes_max; ++i) {
    auto state = on.state();
    if (!state) return state.why();
    const auto& nodes = (*state)->nodes;
    auto key = taken_from(on.engines(), nodes.leaves.front().node.pk);
    if (!key) continue;
    const auto within = on.search(needle_finder({{"private key", *key}})).traces();
    if (!within.empty()) return taken_key{nodes.epoch, *std::move(key), within.size()};
  }
  return fail("no node's key was found while it was there");
}

}  // namespace

result<finding> measure_no_node_key(const no_trace_settings& s) {
  s.progress("taking a node's private key out of its memory");
  auto settings = s.cluster;
  settings.epoch_s = epoch_s;
  settings.grace_s = grace_s;
  auto on = embedded_cluster::start(settings);
  if (!on) return on.why();
  finding f{.promise = "S",
            .attacks = "A2",
            .what = "no key of a node, once its epoch and grace are over",
            .bound = "0 traces",
            .note = fmt::format("Epochs of {} s, {} s of grace. The key is found as a thief would: "
                                "beside copies of the public one lie addresses, one is its own.",
                                epoch_s, grace_s)};
  const std::string what = "the epoch being over";
  auto key = take_key(**on);
  if (!key) return f.controls = {{.without = what, .measured = key.why().text}}, f;
  f.controls = {
      {.without = what, .measured = fmt::format("{} traces", key->traces), .found = true}};
  s.progress("waiting until its epoch and grace are over");
  if (!outlive(**on, key->epoch)) return f.measured = "no other roster came", f;
  const needle_finder finder({{"private key", key->bytes}});
  // An engine looks for what is over a few times a second.
  const auto left = soon_left([&] { return (*on)->search(finder).traces(); });
  f.measured = fmt::format("{} traces of 1 key", left.size());
  f.said = left.empty() ? verdict::held : verdict::broken;
  return f;
}

}  // namespace lethe::audit
