#include "parallel/gloo_communicator.hpp"

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>

#include <algorithm>

#include "parallel/add_tree.hpp"
#include "parallel/gloo_transport.hpp"
#include "parallel/region.hpp"
#include "runtime/base/wipe.hpp"

namespace lethe {
namespace {

using extent = communicator::extent;

// What others send to be added lies here, a row for each: a second-level cache's worth in all.
constexpr size_t scratch_floats = size_t{1} << 18;
// Up to here everyone sends everything to everyone: one hop instead of two.
constexpr size_t whole_floats_max = 4096;

enum class operation : uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, barrier };

/// What ranks must agree on in a call, as a slot: another slot is another call.
uint64_t slot_of(uint64_t call, operation what, uint64_t count, std::span<const extent> parts) {
  uint64_t h = 0x9e3779b97f4a7c15;
  auto mix = [&h](uint64_t v) { h = (h ^ v) * 0xbf58476d1ce4e5b9, h ^= h >> 31; };
  mix(call), mix(uint64_t(what)), mix(count);
  for (extent e : parts) mix(e.offset), mix(e.count);
  return h;
}

bool fit(std::span<const extent> parts, size_t count) {
  return std::ranges::all_of(
      parts, [count](extent e) { return e.offset <= count && e.count <= count - e.offset; });
}

/// Our store as Gloo asks it; one deadline for all that is asked.
class store_for_gloo final : public gloo::rendezvous::Store {
 public:
  store_for_gloo(rank_store& store, std::string prefix, deadline until)
      : store_(store), prefix_(std::move(prefix)), until_(until) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    auto done = store_.set(prefix_ + key, std::as_bytes(std::span(data)));
    if (!done) throw gloo::IoException(done.why().text);
  }
  std::vector<char> get(const std::string& key) override {
    auto value = store_.get(prefix_ + key, until_);
    if (!value) throw gloo::IoException(value.why().text);
    auto* at = reinterpret_cast<const char*>(value->data());
    return {at, at + value->size()};
  }
  // `get` waits.
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {}

 private:
  rank_store& store_;
  const std::string prefix_;
  const deadline until_;
};

}  // namespace

struct gloo_communicator::parts {
  parts(std::unique_ptr<mesh> m, region memory)
      : over(std::move(m)),
        scratch(std::move(memory)),
        rows(size()),
        messages(size()),
        ranges(size()) {}

  uint32_t rank() const { return over->rank(); }
  uint32_t size() const { return over->size(); }
  size_t row_floats() const { return scratch_floats / (size() - 1); }
  float* row_of(uint32_t r) const;
  link_buffer buffer(float* at, size_t count) { return {*over, lane::calls, at, count * 4}; }

  template <class Each>
  void each_other(Each&& each) const {
    for (uint32_t i = 1; i < size(); ++i) each((rank() + i) % size());
  }
  result<void> wait_all(deadline until);
  result<void> exchange(uint64_t slot, float* data, deadline until);
  result<void> add_up(std::span<float> data, bool slices, uint64_t slot, deadline until);
  result<void> gather(float* data, std::span<const extent> ranges, uint64_t slot, deadline until);

  std::unique_ptr<mesh> over;
  region scratch;
  size_t touched = 0;  // floats of each row
  std::vector<float*> rows;
  struct counts {
    uint64_t sent = 0, received = 0;
  };
  std::vector<counts> messages;
  std::vector<extent> ranges;
  uint64_t calls = 0;
};

result<std::unique_ptr<gloo_communicator>> gloo_communicator::join(gloo_config c,
                                                                   rank_store& store) {
  check(c.size > 0 && c.rank < c.size && c.secret.size() == 32);
  deadline formed = std::chrono::steady_clock::now() + c.forming;
  auto at = link_address::parse(c.address, 0);
  if (!at) return at.why();
  auto door = link_door::open(*at);
  if (!door) return door.why();
  auto over = mesh::make({.terms = {.epoch = c.epoch,
                                    .name = c.group,
                                    .rank = c.rank,
                                    .size = c.size,
                                    .protected_link = c.protected_link,
                                    .secret = std::move(c.secret)},
                          .timeout = c.timeout,
                          .spin = c.spin,
                          .first_rank = c.first_rank,
                          .fate = std::move(c.fate)});
  if (!over) return over.why();
  auto memory = region::map(c.size == 1 ? 0 : scratch_floats * sizeof(float), "what ranks add");
  if (!memory) return memory.why();
  std::shared_ptr<gloo::transport::Device> device =
      std::make_shared<link_device>(**over, **door, formed);
  try {
    for (size_t i = 0; i < lanes && c.size > 1; ++i) {
      store_for_gloo ours(store, fmt::format("{}/{}/{}/", c.epoch, c.group, i), formed);
      gloo::rendezvous::Context(int(c.rank), int(c.size)).connectFullMesh(ours, device);
    }
  } catch (const gloo::IoException& e) {  // ours
    return error{e.what()};
  } catch (const std::exception& e) {
    return fail("communicator: Gloo: {}", e.what());
  }
  (*over)->formed();
  return std::unique_ptr<gloo_communicator>(
      new gloo_communicator(std::make_unique<parts>(*std::move(over), *std::move(memory))));
}

gloo_communicator::gloo_communicator(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
gloo_communicator::~gloo_communicator() { wipe(); }

uint32_t gloo_communicator::rank() const { return parts_->rank(); }
uint32_t gloo_communicator::size() const { return parts_->size(); }

float* gloo_communicator::parts::row_of(uint32_t r) const {
  size_t index = (r + size() - rank() - 1) % size();
  return reinterpret_cast<float*>(scratch.data()) + index * row_floats();
}

result<void> gloo_communicator::parts::wait_all(deadline until) {
  result<void> done;
  each_other([&](uint32_t r) {
    if (done) done = over->wait_received(r, lane::calls, until);
    if (done) done = over->wait_sent(r, lane::calls, until);
  });
  return done;
}

/// Sends everyone their range of `data` and takes everyone's floats of mine, which become the sums.
result<void> gloo_communicator::parts::exchange(uint64_t slot, float* data, deadline until) {
  extent mine = ranges[rank()];
  touched = std::max(touched, mine.count);
  each_other([&](uint32_t r) {
    rows[r] = row_of(r);
    if (mine.count != 0) buffer(rows[r], mine.count).recv(int(r), slot, 0, mine.count * 4);
  });
  each_other([&](uint32_t r) {
    extent e = ranges[r];
    if (e.count != 0) buffer(data + e.offset, e.count).send(int(r), slot, 0, e.count * 4);
  });
  rows[rank()] = data + mine.offset;
  if (auto done = wait_all(until); !done) return done;
  add_tree(rows, rows[rank()], 0, mine.count);
  return {};
}

/// In rounds of what fits the scratch. With slices each rank adds up one of its own, and tells it.
result<void> gloo_communicator::parts::add_up(std::span<float> data, bool slices, uint64_t slot,
                                              deadline until) {
  size_t most = row_floats() * (slices ? size() : 1);
  for (size_t begin = 0; begin < data.size(); begin += most, slot += 2) {
    size_t count = std::min(most, data.size() - begin);
    for (uint32_t r = 0; r < size(); ++r) {
      size_t from = slices ? count * r / size() : 0, to = slices ? count * (r + 1) / size() : count;
      ranges[r] = {begin + from, to - from};
    }
    if (auto done = exchange(slot, data.data(), until); !done) return done;
    if (!slices) continue;
    if (auto done = gather(data.data(), ranges, slot + 1, until); !done) return done;
  }
  return {};
}

result<void> gloo_communicator::parts::gather(float* data, std::span<const extent> all,
                                              uint64_t slot, deadline until) {
  extent mine = all[rank()];
  each_other([&](uint32_t r) {
    extent e = all[r];
    buffer(data + e.offset, e.count).recv(int(r), slot, 0, e.count * 4);
  });
  each_other([&](uint32_t r) {
    buffer(data + mine.offset, mine.count).send(int(r), slot, 0, mine.count * 4);
  });
  return wait_all(until);
}

result<void> gloo_communicator::all_reduce(std::span<float> data) {
  parts& p = *parts_;
  if (p.size() == 1) return p.over->alive();
  uint64_t slot = slot_of(p.calls++, operation::all_reduce, data.size(), {});
  bool slices = p.size() > 2 && data.size() > whole_floats_max;
  return p.add_up(data, slices, slot, p.over->call_deadline());
}

result<void> gloo_communicator::all_gather(std::span<float> all, std::span<const extent> ranges) {
  parts& p = *parts_;
  if (ranges.size() != p.size() || !fit(ranges, all.size()))
    return p.over->refuse("parts do not fit the data");
  uint64_t slot = slot_of(p.calls++, operation::all_gather, all.size(), ranges);
  return p.gather(all.data(), ranges, slot, p.over->call_deadline());
}

result<void> gloo_communicator::reduce_scatter(std::span<float> data,
                                               std::span<const extent> ranges) {
  parts& p = *parts_;
  if (ranges.size() != p.size() || !fit(ranges, data.size()))
    return p.over->refuse("parts do not fit the data");
  if (p.size() == 1) return p.over->alive();
  uint64_t slot = slot_of(p.calls++, operation::reduce_scatter, data.size(), ranges);
  deadline until = p.over->call_deadline();
  size_t most = std::ranges::max(ranges, {}, &extent::count).count;
  for (size_t begin = 0; begin < most; begin += p.row_floats(), ++slot) {
    for (uint32_t r = 0; r < p.size(); ++r) {
      size_t from = std::min(begin, ranges[r].count);
      p.ranges[r] = {ranges[r].offset + from, std::min(p.row_floats(), ranges[r].count - from)};
    }
    if (auto done = p.exchange(slot, data.data(), until); !done) return done;
  }
  return p.over->alive();
}

result<void> gloo_communicator::broadcast(std::span<std::byte> data, uint32_t root) {
  parts& p = *parts_;
  if (root >= p.size()) return p.over->refuse("broadcast: no such root");
  const extent from{root, 0};
  uint64_t slot = slot_of(p.calls++, operation::broadcast, data.size(), {&from, 1});
  deadline until = p.over->call_deadline();
  link_buffer all(*p.over, lane::calls, data.data(), data.size());
  if (p.rank() != root) {
    all.recv(int(root), slot, 0, data.size());
    return p.over->wait_received(root, lane::calls, until);
  }
  result<void> done = p.over->alive();
  p.each_other([&](uint32_t r) { all.send(int(r), slot, 0, data.size()); });
  p.each_other([&](uint32_t r) {
    if (done) done = p.over->wait_sent(r, lane::calls, until);
  });
  return done;
}

result<void> gloo_communicator::barrier() {
  parts& p = *parts_;
  uint64_t slot = slot_of(p.calls++, operation::barrier, 0, {});
  link_buffer nothing(*p.over, lane::calls, nullptr, 0);
  p.each_other([&](uint32_t r) { nothing.recv(int(r), slot, 0, 0); });
  p.each_other([&](uint32_t r) { nothing.send(int(r), slot, 0, 0); });
  if (auto done = p.wait_all(p.over->call_deadline()); !done) return done;
  return p.over->alive();
}

result<void> gloo_communicator::send(std::span<const std::byte> data, uint32_t to) {
  parts& p = *parts_;
  if (to >= p.size() || to == p.rank()) return p.over->refuse("send: no such rank");
  if (auto taken = p.over->wait_acknowledged(to, p.over->call_deadline()); !taken) return taken;
  p.over->expect_acknowledgement(to);
  link_buffer all(*p.over, lane::messages, const_cast<std::byte*>(data.data()), data.size());
  all.send(int(to), p.messages[to].sent++, 0, data.size());
  p.over->leave();
  return p.over->alive();
}

result<void> gloo_communicator::recv(std::span<std::byte> data, uint32_t from) {
  parts& p = *parts_;
  if (from >= p.size() || from == p.rank()) return p.over->refuse("recv: no such rank");
  link_buffer all(*p.over, lane::messages, data.data(), data.size());
  all.recv(int(from), p.messages[from].received++, 0, data.size());
  if (auto got = p.over->wait_received(from, lane::messages, p.over->call_deadline()); !got)
    return got;
  p.over->acknowledge(from);
  p.over->leave();
  return {};
}

result<void> gloo_communicator::flush() {
  parts& p = *parts_;
  deadline until = p.over->call_deadline();
  result<void> done = p.over->alive();
  p.each_other([&](uint32_t r) {
    if (done) done = p.over->wait_acknowledged(r, until);
  });
  return done;
}

void gloo_communicator::abort() { parts_->over->abort(); }

result<void> gloo_communicator::health() { return parts_->over->hear(); }

void gloo_communicator::wipe() {
  parts& p = *parts_;
  p.each_other([&](uint32_t r) { lethe::wipe(p.row_of(r), p.touched * sizeof(float)); });
  p.touched = 0;
}

bytes_view gloo_communicator::scratch() const { return parts_->scratch.view(); }

}  // namespace lethe
