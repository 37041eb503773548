#include "tests/gpu/nccl_checks.hpp"

#include <array>
#include <thread>

#include "parallel/local_communicator.hpp"

namespace lethe::testing {

result<std::unique_ptr<nccl_world>> nccl_place::join() const {
  auto ends = make_local_group(1, false);
  return nccl_world::join({.pins = pins, .fate = std::make_shared<group_fate>()}, library,
                          std::move(ends[0]));
}

namespace {

constexpr std::array<size_t, 4> counts{1, 7, 1000, 65'537};
constexpr uint32_t epochs = 3, replays = 200;

template <class T>
constexpr element type_of = sizeof(T) == 4 ? element::f32 : element::bf16;

/// Small whole numbers, which both types hold: 1.0 of bfloat16 is 0x3f80, and so on by its bits.
template <class T>
std::vector<T> numbers(size_t count, uint32_t seed) {
  std::vector<T> all(count);
  for (size_t i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == 4)
      all[i] = T((i * 7 + seed) % 97 + 1);
    else
      all[i] = T(0x3f80 + (i * 7 + seed) % 97);
  }
  return all;
}

/// One call of a group; `to` gets what `from` holds, as there is one rank.
template <class T>
struct collective {
  const char* name;
  result<void> (*call)(nccl_communicator& g, const T* from, T* to, size_t count, nccl_stream on);
};
template <class T>
std::array<collective<T>, 4> collectives() {
  using group = nccl_communicator;
  constexpr element e = type_of<T>;
  return {{{"all_reduce", [](group& g, const T* from, T* to, size_t n,
                             nccl_stream s) { return g.all_reduce(from, to, n, e, s); }},
           {"all_gather", [](group& g, const T* from, T* to, size_t n,
                             nccl_stream s) { return g.all_gather(from, to, n, e, s); }},
           {"reduce_scatter", [](group& g, const T* from, T* to, size_t n,
                                 nccl_stream s) { return g.reduce_scatter(from, to, n, e, s); }},
           {"broadcast", [](group& g, const T* from, T* to, size_t n, nccl_stream s) {
              auto there = g.all_reduce(from, to, n, e, s);
              return there ? g.broadcast(to, n, e, 0, s) : there;
            }}}};
}

template <class T>
std::string calls_of(const nccl_place& p) {
  auto world = must(p.join());
  for (const auto& c : collectives<T>())
    for (size_t count : counts) {
      auto want = numbers<T>(count, 3);
      values_on<T> from(p, count), to(p, count, T(0x7f));
      from.write(want);
      for (T* into : {to.data(), from.data()}) {
        must(c.call(world->world(), from.data(), into, count, p.on.stream()));
        finish(*world, p.on);
      }
      if (to.read() != want) return fmt::format("{} of {} gave something else", c.name, count);
      if (from.read() != want) return fmt::format("{} of {} in place changed it", c.name, count);
    }
  must(world->close());
  return {};
}

std::string group(const nccl_place& p) {
  for (uint32_t epoch = 0; epoch < epochs; ++epoch) {
    auto world = must(p.join());
    if (world->world().rank() != 0 || world->world().size() != 1) return "another rank than 0 of 1";
    if (world->tensor() != nullptr || world->pipeline() != nullptr) return "a group of nobody else";
    must(world->health());
    must(world->close());
  }
  return {};
}

/// Registered or not, it works the same, and content goes in and out by the group alone.
std::string window(const nccl_place& p) {
  constexpr size_t count = 3000;
  auto world = must(p.join());
  auto m = must(world->allocate(count * sizeof(float)));
  if (m.bytes != 12'288 || uintptr_t(m.at) % nccl_window_alignment != 0) return "not whole pages";
  if (m.registered != m.why_not.empty()) return "neither registered nor told why not";
  auto want = numbers<float>(count, 5);
  values_on<float> x(p, count);
  x.write(want);
  must(world->world().all_reduce(x.data(), m.at, count, element::f32, p.on.stream()));
  must(x.wipe());
  must(world->world().all_gather(m.at, x.data(), count, element::f32, p.on.stream()));
  finish(*world, p.on);
  if (x.read() != want) return "the window does not give back what it was given";
  must(p.row.wipe(static_cast<std::byte*>(m.at), m.bytes, p.on.stream()));
  finish(*world, p.on);
  must(world->close());
  return {};
}

/// y += x by way of the window, and bfloat16 beside it, captured once.
std::string graph(const nccl_place& p) {
  constexpr size_t count = 1000;
  constexpr element f32 = element::f32, bf16 = element::bf16;
  auto world = must(p.join());
  nccl_communicator& g = world->world();
  auto m = must(world->allocate(count * sizeof(float)));
  auto* via = static_cast<float*>(m.at);
  values_on<float> x(p, count), y(p, count), sum(p, count);
  values_on<uint16_t> half(p, count), other(p, count);
  auto calls = [&] {
    must(g.all_reduce(x.data(), via, count, f32, p.on.stream()));
    must(p.row.add_tree(via, 0, 1, {.y = sum.data(), .stride = count, .onto = y.data()}, 1, count,
                        p.on.stream()));
    must(p.row.add_tree(sum.data(), 0, 1, {y.data(), count}, 1, count, p.on.stream()));
    must(g.all_gather(half.data(), other.data(), count, bf16, p.on.stream()));
  };
  calls();  // NCCL wants each call to have been made before
  finish(*world, p.on);
  std::vector<float> want(count);
  {
    graph_on captured(p.on, calls);
    for (uint32_t i = 0; i < replays; ++i) {
      auto numbers_of_turn = numbers<float>(count, i);
      x.write(numbers_of_turn);
      half.write(numbers<uint16_t>(count, i));
      captured.queue();
      finish(*world, p.on);
      for (size_t k = 0; k < count; ++k) want[k] += numbers_of_turn[k];
      if (other.read() != numbers<uint16_t>(count, i)) return fmt::format("bf16 of replay {}", i);
      if (y.read() != want) return fmt::format("wrong sums after replay {}", i);
    }
  }
  must(p.row.wipe(static_cast<std::byte*>(m.at), m.bytes, p.on.stream()));
  finish(*world, p.on);
  must(world->close());
  return {};
}

bool all_zero(const std::vector<float>& x) { return x == std::vector<float>(x.size()); }

/// As at the end of a request: the window, and through it what NCCL keeps of its own.
std::string wipe(const nccl_place& p) {
  constexpr size_t count = 5000;
  auto world = must(p.join());
  nccl_communicator& g = world->world();
  auto m = must(world->allocate(count * sizeof(float)));
  values_on<float> x(p, count, 42), seen(p, count, 1);
  auto look = [&] {
    must(g.all_gather(m.at, seen.data(), count, element::f32, p.on.stream()));
    finish(*world, p.on);
    return seen.read();
  };
  must(g.all_reduce(x.data(), m.at, count, element::f32, p.on.stream()));
  if (look() != std::vector<float>(count, 42)) return "there was nothing to wipe";
  must(p.row.wipe(static_cast<std::byte*>(m.at), m.bytes, p.on.stream()));
  must(g.wipe(m.at, m.bytes, p.on.stream()));
  must(x.wipe());
  if (!all_zero(look())) return "the window is not zero";
  if (!all_zero(x.read())) return "what was sent is not zero";
  must(world->close());
  if (!all_zero(x.read()) || !all_zero(seen.read())) return "the end wrote into buffers";
  return {};
}

/// Its own rank is none that a rank talks to; who tries has a mistake, and no group any more.
std::string message_to_itself(const nccl_place& p) {
  auto world = must(p.join());
  values_on<float> x(p, 1, 1);
  auto sent = world->world().send(x.data(), 1, element::f32, 0, p.on.stream());
  if (sent) {
    world->abort();  // what nobody receives
    (void)world->close();
    return "was sent";
  }
  if (sent.why().text.find("send: no such rank") == std::string::npos) return sent.why().text;
  if (world->health()) return "the group lives on";
  (void)world->close();
  return {};
}

/// Whatever was under way, its device is left, and the next epoch has groups that add.
std::string abort(const nccl_place& p) {
  constexpr size_t count = 65'537;
  auto want = numbers<float>(count, 9);
  values_on<float> x(p, count), y(p, count);
  x.write(want);
  for (uint32_t epoch = 0; epoch < epochs; ++epoch) {
    auto world = must(p.join());
    nccl_communicator& g = world->world();
    must(g.all_reduce(x.data(), y.data(), count, element::f32, p.on.stream()));
    world->abort();
    if (world->wait([] { return false; })) return "a wait that an abort did not end";
    if (g.all_reduce(x.data(), y.data(), count, element::f32, p.on.stream()))
      return "a call after the end";
    if (world->close()) return "closed as if nothing had been";
    must(p.on.finish());
    y.write(std::vector<float>(count));
    auto next = must(p.join());
    must(next->world().all_reduce(x.data(), y.data(), count, element::f32, p.on.stream()));
    finish(*next, p.on);
    must(next->close());
    if (y.read() != want) return fmt::format("wrong sums after abort {}", epoch);
  }
  return {};
}

/// Sums that many calls give again and again are the same bits.
std::string repeats(const nccl_place& p) {
  constexpr size_t count = 4099;
  auto world = must(p.join());
  values_on<float> x(p, count), y(p, count);
  std::vector<float> odd(count);
  for (size_t i = 0; i < count; ++i) odd[i] = 1 / float(i * 3 + 1);
  x.write(odd);
  for (uint32_t i = 0; i < replays; ++i) {
    must(world->world().all_reduce(x.data(), y.data(), count, element::f32, p.on.stream()));
    finish(*world, p.on);
    if (y.read() != odd) return fmt::format("other bits in call {}", i);
  }
  must(world->close());
  return {};
}

/// While a world lives NCCL may wait for ranks at the interface that it was told, and nowhere else.
std::string listens(const nccl_place& p) {
  if (p.pins.interface != "lo") return "ask for lo";
  auto world = must(p.join());
  auto here = process_state::now().beyond(p.before).listeners;
  must(world->close());
  for (const auto& [inode, where] : here) {
    bool inside = where.starts_with("127.") || where.starts_with("::1 ");
    if (!inside || where.ends_with(" port 28028")) return "listens at " + where;
  }
  return {};
}

/// Threads end a little after who has told them to.
process_state rest_of(const nccl_place& p) {
  auto until = std::chrono::steady_clock::now() + p.patience;
  auto left = process_state::now().beyond(p.before);
  for (; !left.empty() && std::chrono::steady_clock::now() < until;
       left = process_state::now().beyond(p.before))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return left;
}

/// Nothing of all that went before, either.
std::string leaves_nothing(const nccl_place& p) {
  for (bool aborts : {false, true}) {
    auto world = must(p.join());
    values_on<float> x(p, 100, 1);
    must(world->world().all_reduce(x.data(), x.data(), 100, element::f32, p.on.stream()));
    finish(*world, p.on);
    if (aborts) world->abort();
    if (bool(world->close()) == aborts) return "another end than was asked for";
  }
  auto left = rest_of(p);
  return left.empty() ? "" : "left behind: " + left.text();
}

std::string environment(const nccl_place& p) {
  auto closed = check_nccl_environment(p.pins);
  return closed ? "" : closed.why().text;
}

}  // namespace

std::vector<nccl_check> nccl_checks() {
  return {{"group", group},
          {"calls_f32", calls_of<float>},
          {"calls_bf16", calls_of<uint16_t>},
          {"window", window},
          {"graph", graph},
          {"repeats", repeats},
          {"wipe", wipe},
          {"message_to_itself", message_to_itself},
          {"abort", abort},
          {"listens", listens},
          {"environment", environment},
          {"leaves_nothing", leaves_nothing}};
}

std::string outcome_of(const nccl_check& c, const nccl_place& p) {
  try {
    return c.run(p);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

}  // namespace lethe::testing
