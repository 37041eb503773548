#include "runtime/audit/trace_shapes.hpp"

#include <fmt/format.h>

#include <set>

#include "runtime/cluster/measures.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/trace/allowed_types.hpp"
#include "runtime/trace/tracer.hpp"
#include "runtime/wire/wire.hpp"
#include "schemas/messages.capnp.h"

namespace lethe::audit {

namespace {

constexpr uint32_t records_kept = 4096;
constexpr double handing_on_ms = 0.05;

/// Writes what actors would of one request: each message as it is taken in hand.
class request_records {
 public:
  explicit request_records(tracer& to) : to_(to) {}

  template <class Schema, class Fill>
  void taken(double at_ms, actor_kind sender, actor_kind receiver, Fill&& fill) {
    constexpr uint64_t type = capnp::typeId<Schema>();
    auto message = pack<Schema>({.trace = 1}, fill);
    if (!to_.records(type)) return;
    to_.write({.at_ns = uint64_t(at_ms * 1e6),
               .trace = 1,
               .lamport = to_.tick(),
               .sender = actor_tag{sender}.packed(),
               .receiver = actor_tag{receiver}.packed(),
               .type = type,
               .bytes = uint32_t(message.frame.size())});
  }

 private:
  tracer& to_;
};

capnp::Data::Reader zeroes(uint32_t bytes) {
  static const std::vector<std::byte> all(limits::answer_bytes_max);
  return data_of(bytes_view(all).first(bytes));
}

void begin(const seen_answer& seen, request_records& to) {
  using enum actor_kind;
  to.taken<schema::Place>(0, gateway, scheduler, [](schema::Place::Builder b) {
    b.setRequest(1);
    b.setNode(zeroes(sizeof(hash32)));
  });
  to.taken<schema::Placed>(handing_on_ms, scheduler, gateway, [](schema::Placed::Builder b) {
    b.setRequest(1);
    b.initAt();
  });
  auto fill = [&](schema::Submit::Builder b) {
    b.setRequest(1);
    b.setSealed(zeroes(seen.request_bytes));
  };
  to.taken<schema::Submit>(2 * handing_on_ms, gateway, scheduler, fill);
  to.taken<schema::Submit>(3 * handing_on_ms, scheduler, engine, fill);
  to.taken<schema::Submit>(4 * handing_on_ms, engine, request, fill);
}

void answer(const seen_answer& seen, request_records& to) {
  using enum actor_kind;
  constexpr size_t credit_for = limits::answer_window / 4;
  for (size_t i = 0; i < seen.messages.size(); ++i) {
    const auto& m = seen.messages[i];
    to.taken<schema::Answer>(m.at_ms, request, gateway, [&](schema::Answer::Builder b) {
      b.setRequest(1);
      b.setNumber(uint32_t(i));
      b.setSealed(zeroes(m.bytes));
    });
    if (i % credit_for + 1 == credit_for)
      to.taken<schema::Credit>(m.at_ms + handing_on_ms, gateway, request,
                               [](schema::Credit::Builder b) { b.setPieces(credit_for); });
  }
}

void end(const seen_answer& seen, request_records& to) {
  using enum actor_kind;
  const double at_ms = seen.released_ms + handing_on_ms;
  to.taken<schema::Release>(at_ms, request, engine, [](schema::Release::Builder b) {
    b.setRequest(1);
    requests_took().write(b.initTook());  // as many bytes whatever it took
  });
  to.taken<schema::Release>(at_ms + handing_on_ms, engine, scheduler,
                            [](schema::Release::Builder b) { b.setRequest(1); });
}

/// Its records, by time.
std::vector<trace_record> records_of(const seen_answer& seen, trace_mode mode) {
  tracer kept({.mode = mode,
               .records = records_kept,
               .now = [] { return uint64_t{0}; },
               .allowed_types = allowed_message_types()});
  request_records to(kept);
  begin(seen, to);
  answer(seen, to);
  end(seen, to);
  return kept.read().records;
}

struct recorded {
  captures by_prompt;                                          // each record as a piece
  std::set<std::vector<std::pair<uint64_t, uint32_t>>> kinds;  // (type, bytes) of all of a request
};

void add_records(const std::vector<trace_record>& records, size_t prompt, recorded& to) {
  capture c;
  std::vector<std::pair<uint64_t, uint32_t>> kinds;
  for (const auto& r : records) {
    c.push_back({double(r.at_ns) / 1e6, r.bytes});
    kinds.emplace_back(r.type, r.bytes);
  }
  to.by_prompt[prompt].push_back(std::move(c));
  to.kinds.insert(std::move(kinds));
}

result<recorded> record_all(const shape_settings& s, answer_wire& wire, const answer_shape& shape,
                            trace_mode mode) {
  const auto answers = make_answers(*s.model, s.prompts, s.tokens_most, s.seed);
  std::mt19937_64 dice(s.seed);
  recorded all{.by_prompt = captures(answers.size())};
  for (uint32_t turn = 0; turn < s.captures; ++turn)
    for (size_t i = 0; i < answers.size(); ++i) {
      auto seen = wire.see(answers[i], shape, dice);
      if (!seen) return seen.why();
      add_records(records_of(*seen, mode), i, all);
    }
  return all;
}

}  // namespace

finding measure_trace_shapes(const shape_settings& s) {
  finding out{.promise = "P",
              .attacks = "A5",
              .what = "which of the prompts was asked, from the records of its messages"};
  auto wire = answer_wire::make(s.model);
  if (!wire) return out.note = wire.why().text, out;
  auto strict = record_all(s, **wire, s.shape, trace_mode::allowed);
  auto all = record_all(s, **wire, {}, trace_mode::all);
  if (!strict || !all) return out.note = (strict ? all.why() : strict.why()).text, out;
  const auto told = fingerprint_of(strict->by_prompt, s.seed);
  const auto bare = fingerprint_of(all->by_prompt, s.seed);
  out.measured = fmt::format("{} kinds of records, by their messages and sizes; {}",
                             strict->kinds.size(), text_of(told.all, s.prompts, s.alpha));
  out.bound =
      "requests of one size class leave the same records; when one began and when its place was "
      "free "
      "is in them, and tells how long it took";
  out.said = strict->kinds.size() == 1 ? verdict::held : verdict::broken;
  out.controls = {{.without = "the list of messages that may be recorded (mode all)",
                   .measured = fmt::format("{} kinds of records; {}", all->kinds.size(),
                                           text_of(bare.all, s.prompts, s.alpha)),
                   .found = all->kinds.size() > 1 && bare.all.made.share() >= 0.9}};
  return out;
}

}  // namespace lethe::audit
