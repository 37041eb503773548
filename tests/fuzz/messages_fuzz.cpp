#include <cstddef>
#include <cstdint>

#include "runtime/cluster/cluster_plan.hpp"
#include "tests/unit/wire_messages.hpp"

namespace {

using namespace lethe;

/// What a directory would do with a cluster file that came as a message.
void apply(const wire<schema::ControlAsk>& m) {
  static const auto config =
      cluster_config::parse("profile = \"lab\"\n[model]\npath = \"/m\"\n", "c.toml");
  (void)unpack(m, [](schema::ControlAsk::Reader r) {
    if (!r.isApply()) return;
    auto plan = cluster_plan::make(config.get(), {.cores = 4, .memory = uint64_t{1} << 34});
    auto next = r.getApply().getConfig();
    if (plan->changes(next) && !plan->apply(next)) __builtin_trap();
    if (plan->places().size() != plan->engines()) __builtin_trap();
  });
}

}  // namespace

/// The first byte says which message the others are: all of it is read, as by an actor that looks
/// at every field, and that is no more than a frame of its size may cost.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  size_t wanted = data[0] % testing::all_messages::size, index = 0;
  auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  testing::each_type(testing::all_messages{}, [&]<class Schema>() {
    if (index++ != wanted) return;
    wire<Schema> m{{}, {bytes.begin(), bytes.end()}};
    auto read = testing::read_message(m);
    if (read && *read > 64 * 8 * (m.frame.size() + 64)) __builtin_trap();
    if constexpr (std::is_same_v<Schema, schema::ControlAsk>) apply(m);
  });
  return 0;
}
