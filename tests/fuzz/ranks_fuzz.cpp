#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "parallel/link_door.hpp"
#include "parallel/plan_bytes.hpp"

namespace {

using namespace lethe;

/// What another process may say is a plan: nothing outside of the message is read.
void read_plan(bytes_view said) {
  static plan_bytes plans = *plan_bytes::make();
  auto first = plans.first();
  std::fill(first.begin(), first.end(), std::byte{0});
  std::copy_n(said.begin(), std::min(said.size(), first.size()), first.begin());
  step_plan plan;
  const uint32_t* ids = nullptr;
  auto more = plans.read(plan, ids);
  if (!more || !*more) return;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < plan.tokens; ++i) sum += ids[i];
  volatile uint64_t used = sum;
  (void)used;
  auto rest = plans.rest();
  if (!rest) __builtin_trap();
  plans.wipe();
}

/// Frames of a link, sealed or not, that expects one of 40 bytes and an acknowledgement.
void read_frames(bytes_view said, bool sealed) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  std::optional<lethe::link::keys> keys;
  if (sealed)
    keys.emplace(lethe::link::keys{{key_bytes(16), key_bytes(12)}, {key_bytes(16), key_bytes(12)}});
  lethe::link l(owned_fd(ends[0]), std::move(keys));
  std::byte to[40];
  l.receive(1, to);
  l.expect_acknowledgement();
  (void)!write(ends[1], said.data(), std::min<size_t>(said.size(), 60'000));
  l.pull();
  l.listen();
  // Nobody without the key makes a sealed link believe that anything came.
  if (sealed && (l.received() || l.acknowledged() || l.heard())) __builtin_trap();
  l.close({ending::aborted, 1});
  close(ends[1]);
}

}  // namespace

/// Bytes of another rank, or of somebody who takes its place.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes_view said = std::as_bytes(std::span(data, size));
  read_plan(said);
  read_frames(said, false);
  read_frames(said, true);
  group_terms terms{.epoch = 1, .name = "x", .rank = 0, .size = 3, .secret = key_bytes(32)};
  hello h{};
  std::copy_n(said.begin(), std::min(said.size(), h.size()), h.begin());
  if (auto who = read_hello(terms, h); who && (who->rank == 0 || who->rank > 2)) __builtin_trap();
  if (auto at = link_address::read(said)) (void)at->text();
  return 0;
}
