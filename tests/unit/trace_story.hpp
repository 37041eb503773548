#pragma once

#include <algorithm>
#include <map>

#include "runtime/trace/timeline.hpp"
#include "schemas/messages.capnp.h"

namespace lethe {

constexpr int64_t us = 1000, ms = 1'000'000;

/// A made-up cluster. Everything happens in true time; each process writes down what its own clock
/// shows, and the directory knows how much that differs, give or take.
class story {
 public:
  struct actor {
    uint32_t process;
    actor_kind kind;
    uint16_t index = 0;
  };
  struct letter {
    trace_stamp stamp;
    uint64_t type = 0;
    uint32_t bytes = 0;
  };

  /// `skew`: what its clock shows beyond the true time. `misjudged`: how far the directory errs.
  uint32_t process(std::string host, uint32_t pid, int64_t skew, uint64_t error = 0,
                   int64_t misjudged = 0) {
    skews_.push_back(skew);
    clocks_.push_back(0);
    all_.processes.push_back({.host = std::move(host),
                              .pid = pid,
                              .mode = trace_mode::all,
                              .offset_ns = misjudged - skew,
                              .error_ns = error});
    return uint32_t(skews_.size() - 1);
  }

  template <class Schema>
  letter send(uint64_t trace, actor from, int64_t at, uint32_t bytes = 64) {
    return {{trace, ++clocks_[from.process], tag(from), own_time(from.process, at)},
            capnp::typeId<Schema>(),
            bytes};
  }

  void take(const letter& m, actor by, int64_t at, int64_t handled = 10 * us) {
    auto& clock = clocks_[by.process];
    clock = std::max(clock, m.stamp.lamport) + 1;
    uint64_t own = own_time(by.process, at);
    all_.processes[by.process].records.push_back({.at_ns = own,
                                                  .trace = m.stamp.trace,
                                                  .lamport = clock,
                                                  .sender = m.stamp.sender,
                                                  .receiver = tag(by),
                                                  .type = m.type,
                                                  .queued_ns = int64_t(own - m.stamp.sent_ns),
                                                  .handled_ns = uint64_t(handled),
                                                  .bytes = m.bytes});
  }

  gathered gather(int64_t at) const {
    gathered all = all_;
    all.unix_ns = 1'800'000'000'000'000'000;
    for (uint32_t p = 0; p < all.processes.size(); ++p) all.processes[p].now_ns = own_time(p, at);
    return all;
  }

 private:
  uint64_t own_time(uint32_t process, int64_t at) const {
    return uint64_t(3'600'000 * ms + at + skews_[process]);
  }
  uint64_t tag(actor a) const {
    return actor_tag{a.kind, a.index, all_.processes[a.process].pid}.packed();
  }
  gathered all_;
  std::vector<int64_t> skews_;
  std::vector<uint64_t> clocks_;
};

/// One request on two hosts, from a face on the first to an engine on the second.
struct two_hosts {
  story s;
  uint32_t a, b;
  story::actor face, scheduler, engine, request;

  explicit two_hosts(int64_t skew_of_b = 0, uint64_t error = 0, int64_t misjudged = 0,
                     uint32_t pid_of_b = 200)
      : a(s.process("a", 100, 0)),
        b(s.process("b", pid_of_b, skew_of_b, error, misjudged)),
        face{a, actor_kind::face},
        scheduler{a, actor_kind::scheduler},
        engine{b, actor_kind::engine, 2},
        request{b, actor_kind::request, 2} {}

  /// Until the engine has it; the rest is in `finish`.
  void begin(uint64_t id, int64_t at) {
    using namespace schema;
    s.take(s.send<Place>(id, face, at), scheduler, at + 10 * us, 20 * us);
    s.take(s.send<Placed>(id, scheduler, at + 25 * us), face, at + 40 * us, 50 * us);
    auto submit = s.send<Submit>(id, face, at + 80 * us, 4000);
    s.take(submit, scheduler, at + 100 * us, 20 * us);
    s.take(submit, engine, at + 300 * us, 50 * us);
    s.take(submit, request, at + 360 * us, 140 * us);
  }
  void finish(uint64_t id, int64_t at, int answers = 2) {
    using namespace schema;
    for (int i = 0; i < answers; ++i) {
      int64_t sent = at + 900 * us + i * 600 * us;
      s.take(s.send<Answer>(id, request, sent, 200), face, sent + 200 * us, 20 * us);
    }
    int64_t end = at + 910 * us + (answers - 1) * 600 * us;
    auto release = s.send<Release>(id, request, end);
    s.take(release, engine, end + 10 * us, 10 * us);
    s.take(release, scheduler, end + 215 * us, 5 * us);
  }
  void whole(uint64_t id, int64_t at, int answers = 2) {
    begin(id, at);
    finish(id, at, answers);
  }
};

}  // namespace lethe
