#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "tests/unit/nccl_fake_state.hpp"

namespace lethe::testing {
namespace {

/// What memory holds that nobody has used.
constexpr std::byte untouched{0xff};

using status = nccl_status;

thread_local uint32_t this_rank = 0;
thread_local int group_depth = 0;
thread_local std::vector<nccl_comm> group_aborts;

}  // namespace

void fake_nccl::be(uint32_t rank) { this_rank = rank; }

/// The functions of the table.
struct fake_calls {
  using member = fake_nccl::member;
  using group = fake_nccl::group;
  using operation = fake_nccl::operation;

  static member* of(nccl_comm c) { return reinterpret_cast<member*>(c); }
  static nccl_comm handle(member* m) { return reinterpret_cast<nccl_comm>(m); }

  static std::optional<status> unfit(fake_visit& v, member& m, nccl_call call) {
    auto say = [&](const char* what) {
      return v.fake.note(fmt::format("{} of rank {} {}", name_of(call), v.rank, what));
    };
    if (m.aborted || m.gone) return say("after the end");
    if (m.busy) return say("while another call is in progress");
    if (m.state == status::success) return {};
    if (m.told) return say("after an error");
    m.told = true;
    return m.state;
  }

  /// A call that NCCL goes on with behind its caller.
  static status begin(fake_visit& v, member& m, nccl_call call, std::function<bool()> may_end,
                      std::function<void()> ends) {
    return begin(v, m, call, v.fake.fault_of(v.rank, call), std::move(may_end), std::move(ends));
  }

  static status begin(fake_visit& v, member& m, nccl_call call, const nccl_fault* f,
                      std::function<bool()> may_end, std::function<void()> ends) {
    m.busy = call;
    m.questions = v.fake.options_.questions;
    m.never = false;
    m.fails.reset();
    m.may_end = std::move(may_end);
    m.ends = std::move(ends);
    if (f != nullptr) {
      if (f->what == nccl_fault::never_ends) m.never = true;
      if (f->what == nccl_fault::fails) m.fails = f->status;
      if (f->what == nccl_fault::never_returns)
        v.fake.changed_.wait(v.lock, [&] { return v.fake.let_go_; });
      if (f->what == nccl_fault::refused) {
        m.busy.reset();
        m.told = true;
        return m.state = f->status;
      }
    }
    return look(m);
  }

  static status look(member& m) {
    status state = how_it_goes(m);
    m.told |= m.state != status::success;
    return state;
  }
  static status how_it_goes(member& m) {
    if (!m.busy) return m.state;
    if (m.never) return status::in_progress;
    if (m.questions != 0) return --m.questions, status::in_progress;
    if (m.fails) {
      m.busy.reset();
      return m.state = *m.fails;
    }
    if (!m.may_end()) return status::in_progress;
    m.busy.reset();
    m.ends();
    return m.state;
  }

  static status get_version(int* version) { return *version = 22809, status::success; }

  static status get_unique_id(nccl_id* id) {
    fake_visit v(this_rank, true);
    if (auto said = v.at_once(nccl_call::get_unique_id)) return *said;
    static std::atomic<uint64_t> next = 1;
    uint64_t number = next++;
    std::memcpy(id->bytes, &number, sizeof number);
    return status::success;
  }

  static member& join(fake_visit& v, uint64_t id, int size, int rank) {
    auto& groups = v.fake.groups_;
    auto at = std::ranges::find(groups, id, [](const auto& g) { return g->id; });
    if (at == groups.end())
      at = groups.insert(at, std::make_unique<group>(group{.id = id, .size = size}));
    group& g = **at;
    g.members.resize(size_t(size));
    if (g.size != size || g.members[size_t(rank)] != nullptr)
      v.fake.note("ranks do not fit each other in a group");
    auto& m = v.fake.members_.emplace_back(std::make_unique<member>());
    m->of = &g, m->rank = rank, m->world_rank = v.rank;
    g.members[size_t(rank)] = m.get();
    return *m;
  }

  static bool complete(const group& g) {
    return std::ranges::all_of(g.members, [](member* m) { return m != nullptr; });
  }

  static bool good(const nccl_setup& s) {
    return s.size == sizeof s && s.magic == 0xcafebeef && s.version == 22800 && s.blocking == 0 &&
           s.split_share == 0 && s.channels_min == s.channels_max && s.channels_max > 0;
  }

  static status init(nccl_comm* made, int size, nccl_id id, int rank, nccl_setup* setup) {
    fake_visit v(uint32_t(rank), true);
    if (!good(*setup)) return v.fake.note("init: another setup than NCCL's and ours");
    uint64_t number;
    std::memcpy(&number, id.bytes, sizeof number);
    member& m = join(v, number, size, rank);
    *made = handle(&m);
    return begin(
        v, m, nccl_call::init, [&m] { return complete(*m.of); }, [] {});
  }

  static status split(nccl_comm parent, int color, int key, nccl_comm* made, nccl_setup* setup) {
    member& m = *of(parent);
    fake_visit v(m.world_rank, true);
    if (auto said = unfit(v, m, nccl_call::split)) return *said;
    if (!good(*setup)) return v.fake.note("split: another setup than NCCL's and ours");
    *made = nullptr;
    uint32_t turn = m.splits++;
    group& g = *m.of;
    ++g.splits[turn];
    auto& groups = v.fake.groups_;
    uint64_t id = g.id << 16 | uint64_t(turn + 1) << 8 | uint64_t(color);
    auto at = std::ranges::find(groups, id, [](const auto& one) { return one->id; });
    if (at == groups.end()) at = groups.insert(at, std::make_unique<group>(group{.id = id}));
    group& into = **at;
    into.size = std::max(into.size, key + 1);
    into.members.resize(size_t(into.size));
    return begin(
        v, m, nccl_call::split, [&g, turn] { return g.splits[turn] == uint32_t(g.size); },
        [&fake = v.fake, &into, key, made, rank = m.world_rank] {
          auto& child = fake.members_.emplace_back(std::make_unique<member>());
          child->of = &into, child->rank = key, child->world_rank = rank;
          into.members[size_t(key)] = child.get();
          *made = handle(child.get());
        });
  }

  static status async_error(nccl_comm c, status* state) {
    member& m = *of(c);
    fake_visit v(m.world_rank, true);
    if (m.aborted || m.gone) return v.fake.note("a question after the end");
    *state = look(m);
    return status::success;
  }

  static status finalize(nccl_comm c) {
    member& m = *of(c);
    fake_visit v(m.world_rank, true);
    if (auto said = unfit(v, m, nccl_call::finalize)) return *said;
    if (!m.windows.empty()) v.fake.note("finalize: a window is still registered");
    if (std::ranges::any_of(m.work, [](const auto& w) { return !w.expired(); }))
      v.fake.note("finalize: the group's work is still queued, or in a graph");
    ++m.of->finalized;
    return begin(
        v, m, nccl_call::finalize, [&m] { return m.of->finalized == m.of->members.size(); },
        [&m] { m.finalized = true; });
  }

  static status destroy(nccl_comm c) {
    member& m = *of(c);
    fake_visit v(m.world_rank, true);
    if (auto said = unfit(v, m, nccl_call::destroy)) return *said;
    if (!m.finalized) v.fake.note("destroy: not finalized");
    auto said = v.at_once(nccl_call::destroy);
    m.gone = true;
    m.rings.clear();
    return said.value_or(status::success);
  }

  /// Its flag ends what NCCL does behind its caller; what was split off by then is there.
  static status abort(nccl_comm c) {
    member& m = *of(c);
    fake_visit v(m.world_rank, true);
    if (m.aborted || m.gone) return v.fake.note("abort after the end");
    auto said = v.at_once(nccl_call::abort);
    if (m.busy == nccl_call::split && !m.never && !m.fails && m.may_end()) m.ends();
    m.busy.reset();
    m.aborted = true;
    group_aborts.push_back(c);
    if (group_depth == 0) finish_aborts(v.fake);
    return said.value_or(status::success);
  }

  static void finish_aborts(fake_nccl& fake) {
    for (nccl_comm c : group_aborts) wait_for_kernels(fake, *of(c));
    for (nccl_comm c : group_aborts) {
      fake.drop_operations_of(*of(c));
      of(c)->windows.clear();
      of(c)->rings.clear();
      of(c)->gone = true;
    }
    group_aborts.clear();
  }

  static void wait_for_kernels(fake_nccl& fake, const member& m) {
    for (auto& op : fake.operations_)
      for (auto& mine : op->parts)
        if (mine.whose == &m)
          for (auto& other : fake.operations_)
            for (auto& its : other->parts)
              if (its.whose != nullptr && !its.whose->aborted &&
                  its.whose->world_rank == m.world_rank && its.batch != mine.batch &&
                  its.batch->stream == mine.batch->stream &&
                  std::ranges::find(mine.batch->stream->order, its.batch) <
                      std::ranges::find(mine.batch->stream->order, mine.batch))
                fake.note("abort waits for ever, behind a kernel of a group that is not aborted");
  }

  static status mem_alloc(void** at, size_t bytes) {
    fake_visit v(this_rank, true);
    if (auto said = v.at_once(nccl_call::mem_alloc)) return *said;
    *at = std::aligned_alloc(nccl_window_alignment, std::max(bytes, nccl_window_alignment));
    std::memset(*at, int(untouched), bytes);
    v.fake.memory_.emplace(*at, bytes);
    return status::success;
  }

  static status mem_free(void* at) {
    fake_nccl& fake = *current_fake.load();
    std::lock_guard lock(fake.mutex_);
    for (auto& m : fake.members_)
      if (m->windows.contains(static_cast<nccl_window>(at)))
        fake.note("memory is freed that is registered");
    auto known = fake.memory_.find(at);
    if (known == fake.memory_.end()) return fake.note("memory is freed that is not there");
    std::span all(static_cast<std::byte*>(at), known->second);
    auto is = [&all](std::byte value) {
      return std::ranges::all_of(all, [value](std::byte b) { return b == value; });
    };
    fake.given_back_full_ += !is(std::byte{0}) && !is(untouched);
    fake.memory_.erase(known);
    std::free(at);
    return status::success;
  }

  /// As NCCL 2.28 has it: success, whether or not it still goes on.
  static status told_late(status said) {
    return said == status::in_progress ? status::success : said;
  }

  static status window_register(nccl_comm c, void* at, size_t bytes, nccl_window* made, int flags) {
    member& m = *of(c);
    fake_visit v(m.world_rank, true);
    if (auto said = unfit(v, m, nccl_call::window_register)) return *said;
    auto there = v.fake.memory_.find(at);
    if (there == v.fake.memory_.end() || bytes > there->second || flags != nccl_window_symmetric ||
        uintptr_t(at) % nccl_window_alignment != 0 || bytes % nccl_window_alignment != 0)
      return v.fake.note("a window that NCCL would not register");
    uint32_t turn = m.registrations++;
    group& g = *m.of;
    if (g.registered[turn]++ == 0) g.registered_bytes[turn] = bytes;
    if (g.registered_bytes[turn] != bytes) v.fake.note("ranks' windows differ in size");
    return told_late(begin(
        v, m, nccl_call::window_register,
        [&g, turn] { return g.registered[turn] == g.members.size(); },
        [&m, &fake = v.fake, at, made] {
          if (!fake.options_.windows || fake.options_.without_window == int(m.world_rank)) return;
          *made = static_cast<nccl_window>(at);
          m.windows.insert(*made);
          ++fake.registrations_;
        }));
  }

  static status window_deregister(nccl_comm c, nccl_window window) {
    member& m = *of(c);
    fake_visit v(m.world_rank, true);
    if (auto said = unfit(v, m, nccl_call::window_deregister)) return *said;
    if (m.windows.erase(window) == 0) v.fake.note("a window is deregistered that is not there");
    return told_late(begin(
        v, m, nccl_call::window_deregister, [] { return true; }, [] {}));
  }

  static status group_start() { return ++group_depth, status::success; }

  static status group_end() {
    if (--group_depth != 0 || (group_aborts.empty() && !fake_streams::grouped()))
      return status::success;
    fake_nccl& fake = *current_fake.load();
    std::lock_guard lock(fake.mutex_);
    finish_aborts(fake);
    fake_streams::end_group();
    fake.progress();
    return status::success;
  }

  /// Adds a rank's part to an operation, which is there when another rank came before.
  static status enqueue(nccl_comm c, nccl_call call, operation wanted, size_t part,
                        operation::part mine, void* stream) {
    member& m = *of(c);
    fake_visit v(m.world_rank, true);
    if (auto said = unfit(v, m, call)) return *said;
    wanted.of = m.of;
    fake_post post = [&fake = v.fake, wanted, part, mine, &m](fake_batch* batch) {
      join_in(fake, m, wanted, part, mine, batch);
    };
    member::shape shape{uint64_t(call), wanted.count, uint64_t(wanted.type), uint64_t(wanted.root),
                        uint64_t(wanted.to)};
    auto begins = [&fake = v.fake, &m, stream, shape, post] {
      fake_streams::hand_over(fake, m, stream, shape, post, group_depth != 0);
    };
    const nccl_fault* f = v.fake.fault_of(v.rank, call);
    if (f == nullptr && (v.fake.options_.questions == 0 || group_depth != 0))
      return begins(), status::success;
    if (f == nullptr || f->what != nccl_fault::fails)
      return begin(
          v, m, call, f, [] { return true; }, begins);
    // A kernel that waits for ever, and NCCL knows why.
    auto waits = [&fake = v.fake, wanted, part, mine, &m](fake_batch* batch) {
      auto& op = fake.operations_.emplace_back(std::make_unique<operation>(wanted));
      op->number = ~0U;
      op->parts[part] = {&m, mine.from, mine.into, batch};
    };
    fake_streams::hand_over(v.fake, m, stream, shape, waits, group_depth != 0);
    m.state = f->status;
    return status::success;
  }

  static void join_in(fake_nccl& fake, member& m, operation wanted, size_t part,
                      operation::part mine, fake_batch* batch) {
    if (wanted.what != nccl_call::send) wanted.number = ++m.calls;
    auto at = std::ranges::find_if(fake.operations_, [&](const auto& op) {
      bool messages = wanted.what == nccl_call::send;
      return op->of == wanted.of && op->number == wanted.number &&
             (op->what == nccl_call::send) == messages &&
             (!messages ||
              (op->root == wanted.root && op->to == wanted.to && op->parts[part].batch == nullptr));
    });
    if (at == fake.operations_.end())
      at = fake.operations_.insert(at, std::make_unique<operation>(wanted));
    operation& op = **at;
    if (op.what != wanted.what || op.count != wanted.count || op.type != wanted.type ||
        op.root != wanted.root)
      fake.note("ranks differ in what they call");
    op.parts[part] = {&m, mine.from, mine.into, batch};
  }

  static operation collective(nccl_comm c, nccl_call call, size_t count, nccl_type type,
                              int root = -1) {
    return {.what = call,
            .number = 0,  // is counted when it is done
            .count = count,
            .type = type,
            .root = root,
            .to = -1,
            .parts = std::vector<operation::part>(of(c)->of->members.size())};
  }

  static status all_reduce(const void* from, void* to, size_t count, nccl_type type, nccl_reduction,
                           nccl_comm c, void* s) {
    return enqueue(c, nccl_call::all_reduce, collective(c, nccl_call::all_reduce, count, type),
                   size_t(of(c)->rank), {.from = from, .into = to}, s);
  }
  static status all_gather(const void* from, void* to, size_t count, nccl_type type, nccl_comm c,
                           void* s) {
    return enqueue(c, nccl_call::all_gather, collective(c, nccl_call::all_gather, count, type),
                   size_t(of(c)->rank), {.from = from, .into = to}, s);
  }
  static status reduce_scatter(const void* from, void* to, size_t count, nccl_type type,
                               nccl_reduction, nccl_comm c, void* s) {
    return enqueue(c, nccl_call::reduce_scatter,
                   collective(c, nccl_call::reduce_scatter, count, type), size_t(of(c)->rank),
                   {.from = from, .into = to}, s);
  }
  static status broadcast(const void* from, void* to, size_t count, nccl_type type, int root,
                          nccl_comm c, void* s) {
    return enqueue(c, nccl_call::broadcast, collective(c, nccl_call::broadcast, count, type, root),
                   size_t(of(c)->rank), {.from = from, .into = to}, s);
  }
  static operation message(int from, int to, size_t count, nccl_type type) {
    return {.what = nccl_call::send,
            .number = 0,
            .count = count,
            .type = type,
            .root = from,
            .to = to,
            .parts = std::vector<operation::part>(2)};
  }
  static status send(const void* from, size_t count, nccl_type type, int peer, nccl_comm c,
                     void* s) {
    return enqueue(c, nccl_call::send, message(of(c)->rank, peer, count, type), 0, {.from = from},
                   s);
  }
  static status recv(void* to, size_t count, nccl_type type, int peer, nccl_comm c, void* s) {
    return enqueue(c, nccl_call::recv, message(peer, of(c)->rank, count, type), 1, {.into = to}, s);
  }
};

const nccl_functions& fake_nccl::table() {
  using f = fake_calls;
  static const nccl_functions all{
      f::get_version,     f::get_unique_id,     f::init,        f::split,     f::async_error,
      f::finalize,        f::destroy,           f::abort,       f::mem_alloc, f::mem_free,
      f::window_register, f::window_deregister, f::group_start, f::group_end, f::all_reduce,
      f::all_gather,      f::reduce_scatter,    f::broadcast,   f::send,      f::recv};
  return all;
}

}  // namespace lethe::testing
