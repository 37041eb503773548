#include "parallel/local_communicator.hpp"

#include <algorithm>
#include <cstring>

#include "parallel/add_tree.hpp"
#include "parallel/word.hpp"

namespace lethe {
namespace {

using extent = communicator::extent;

enum class operation : uint8_t { none, all_reduce, all_gather, reduce_scatter, broadcast, barrier };

/// What one rank brings to a collective call.
struct offer {
  operation what = operation::none;
  std::byte* data = nullptr;
  size_t count = 0;  // floats, or bytes of a broadcast
  std::span<const extent> parts;
  uint32_t root = 0;

  bool agrees(const offer& o) const {
    return what == o.what && count == o.count && root == o.root &&
           std::ranges::equal(parts, o.parts);
  }
};

/// One direction between two ranks: an address that the sender shows and the receiver reads from.
struct channel {
  word sent, taken;
  std::span<const std::byte> shown;
};

struct group {
  group(uint32_t n, bool spins)
      : size(n),
        spin(spins),
        meeting(n, spins),
        offers{offers_of(n), offers_of(n)},
        channels(size_t{n} * n) {}

  static std::vector<offer> offers_of(uint32_t n) { return std::vector<offer>(n); }
  channel& between(uint32_t from, uint32_t to) { return channels[size_t{from} * size + to]; }

  void abort() {
    aborted.store(true);
    meeting.abort();
    for (channel& c : channels) c.sent.abort(), c.taken.abort();
  }

  const uint32_t size;
  const bool spin;
  std::atomic<bool> aborted = false;
  barrier meeting;
  // Two sets in turn: a slow rank may still read the last call's while others offer the next's.
  std::vector<offer> offers[2];
  std::vector<channel> channels;
};

error dead() { return fail("communicator: the group was aborted"); }

bool fit(std::span<const extent> parts, size_t count) {
  return std::ranges::all_of(
      parts, [count](extent e) { return e.offset <= count && e.count <= count - e.offset; });
}

void copy_floats(const offer& from, const offer& to, size_t offset, size_t count) {
  if (count != 0) std::memcpy(to.data + offset * 4, from.data + offset * 4, count * 4);
}

class local_communicator final : public communicator {
 public:
  local_communicator(std::shared_ptr<group> g, uint32_t rank)
      : group_(std::move(g)), rank_(rank), rows_(group_->size) {}

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return group_->size; }

  result<void> all_reduce(std::span<float> data) override {
    if (size() == 1) return alive();
    auto all = meet(floats(operation::all_reduce, data));
    if (!all) return all.why();
    size_t begin = data.size() * rank_ / size(), end = data.size() * (rank_ + 1) / size();
    add(*all, begin, end);
    for (uint32_t r = 1; r < size(); ++r) copy_floats((*all)[0], (*all)[r], begin, end - begin);
    return part();
  }

  result<void> all_gather(std::span<float> data, std::span<const extent> parts) override {
    auto all = meet(floats(operation::all_gather, data, parts));
    if (!all) return all.why();
    for (uint32_t r = 0; r < size(); ++r)
      if (r != rank_) copy_floats((*all)[r], (*all)[rank_], parts[r].offset, parts[r].count);
    return part();
  }

  result<void> reduce_scatter(std::span<float> data, std::span<const extent> parts) override {
    auto all = meet(floats(operation::reduce_scatter, data, parts));
    if (!all) return all.why();
    extent mine = parts[rank_];
    add(*all, mine.offset, mine.offset + mine.count);
    if (rank_ != 0) copy_floats((*all)[0], (*all)[rank_], mine.offset, mine.count);
    return part();
  }

  result<void> broadcast(std::span<std::byte> data, uint32_t root) override {
    if (root >= size()) return refuse("broadcast: no such root");
    auto all = meet({operation::broadcast, data.data(), data.size(), {}, root});
    if (!all) return all.why();
    if (rank_ != root && !data.empty()) std::memcpy(data.data(), (*all)[root].data, data.size());
    return part();
  }

  result<void> barrier() override {
    auto all = meet({operation::barrier});
    if (!all) return all.why();
    return {};
  }

  result<void> send(std::span<const std::byte> data, uint32_t to) override {
    if (to >= size() || to == rank_) return refuse("send: no such rank");
    channel& c = group_->between(rank_, to);
    if (!received(c)) return dead();
    c.shown = data;
    c.sent.advance();
    return {};
  }

  result<void> recv(std::span<std::byte> data, uint32_t from) override {
    if (from >= size() || from == rank_) return refuse("recv: no such rank");
    channel& c = group_->between(from, rank_);
    if (!c.sent.wait_past(c.taken.count(), group_->spin)) return dead();
    if (c.shown.size() != data.size()) return refuse("recv: sender and receiver differ in length");
    if (!data.empty()) std::memcpy(data.data(), c.shown.data(), data.size());
    c.taken.advance();
    return {};
  }

  result<void> flush() override {
    for (uint32_t r = 0; r < size(); ++r)
      if (r != rank_ && !received(group_->between(rank_, r))) return dead();
    return {};
  }

  void abort() override { group_->abort(); }
  result<void> health() override { return alive(); }
  void wipe() override {}

 private:
  static offer floats(operation what, std::span<float> data, std::span<const extent> parts = {}) {
    return {what, reinterpret_cast<std::byte*>(data.data()), data.size(), parts};
  }

  /// The sums of [begin, end) over all ranks end in rank 0's data; nobody else touches that range.
  void add(std::span<const offer> all, size_t begin, size_t end) {
    for (uint32_t r = 0; r < size(); ++r) rows_[r] = reinterpret_cast<float*>(all[r].data);
    add_tree(rows_, rows_[0], begin, end);
  }

  /// Shows what this rank brings and waits for the others'. They must fit each other.
  result<std::span<const offer>> meet(const offer& mine) {
    std::vector<offer>& all = group_->offers[calls_++ % 2];
    all[rank_] = mine;
    if (!group_->meeting.wait()) return dead();
    const char* flaw = flaw_of(all, mine);
    if (flaw == nullptr) return std::span<const offer>(all);
    // Every rank sees the same flaw; none leaves while another still compares.
    group_->meeting.wait();
    return refuse(flaw);
  }

  const char* flaw_of(std::span<const offer> all, const offer& mine) const {
    for (const offer& o : all)
      if (!o.agrees(mine)) return "ranks differ in what they call, or in lengths";
    bool in_parts = mine.what == operation::all_gather || mine.what == operation::reduce_scatter;
    if (in_parts && (mine.parts.size() != size() || !fit(mine.parts, mine.count)))
      return "parts do not fit the data";
    return nullptr;
  }

  /// Nobody may touch their data before all are done with it.
  result<void> part() {
    if (!group_->meeting.wait()) return dead();
    return {};
  }

  /// Whether the receiver has taken what was shown last.
  bool received(channel& c) {
    uint32_t sent = c.sent.count();
    for (uint32_t taken = c.taken.count(); taken != sent; taken = c.taken.count())
      if (!c.taken.wait_past(taken, group_->spin)) return false;
    return !group_->aborted.load();
  }

  result<void> alive() const {
    if (group_->aborted.load()) return dead();
    return {};
  }

  error refuse(const char* why) {
    group_->abort();
    return fail("communicator: {}; the group is aborted", why);
  }

  std::shared_ptr<group> group_;
  const uint32_t rank_;
  std::vector<float*> rows_;
  uint32_t calls_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<communicator>> make_local_group(uint32_t size, bool spin) {
  check(size > 0);
  auto shared = std::make_shared<group>(size, spin);
  std::vector<std::unique_ptr<communicator>> ends;
  for (uint32_t r = 0; r < size; ++r)
    ends.push_back(std::make_unique<local_communicator>(shared, r));
  return ends;
}

}  // namespace lethe
