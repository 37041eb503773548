#include "actors/cluster/rank_asks.hpp"

#include "runtime/wire/message_limits.hpp"

namespace lethe {

namespace {

/// A frame behind its length.
template <class Schema>
bool say(rank_line& line, const wire<Schema>& m) {
  const auto size = uint32_t(m.frame.size());
  return line.send(std::as_bytes(std::span(&size, 1))) && line.send(m.frame);
}

template <class Schema>
std::optional<wire<Schema>> hear(rank_line& line) {
  uint32_t size = 0;
  if (!line.receive(std::as_writable_bytes(std::span(&size, 1)))) return {};
  if (size > frame_bytes_max<Schema>) return {};
  wire<Schema> m;
  m.frame.resize(size);
  if (!line.receive(m.frame)) return {};
  return m;
}

template <class Write>
bool say_ask(rank_line& line, Write&& write) {
  return say(line, pack<schema::RankAsk>({}, std::forward<Write>(write)));
}

bool say_answer(rank_line& line, const result<std::vector<std::byte>>& said) {
  return say(line, pack<schema::RankAnswer>({}, [&](schema::RankAnswer::Builder b) {
               if (said)
                 b.setValue(data_of(*said));
               else
                 b.setWhy(said.why().text);
             }));
}

result<std::vector<std::byte>> hear_answer(rank_line& line) {
  auto answer = hear<schema::RankAnswer>(line);
  if (!answer) return fail("ranks: the engine's process is gone");
  result<std::vector<std::byte>> value = std::vector<std::byte>();
  auto read = unpack(*answer, [&](schema::RankAnswer::Reader r) {
    const bytes_view said = bytes_of(r.getValue());
    if (std::string why = r.getWhy(); !why.empty())
      value = fail("{}", why);
    else
      value = std::vector<std::byte>(said.begin(), said.end());
  });
  return read ? std::move(value) : read.why();
}

/// What the store says to one question; nothing if it is none.
std::optional<result<std::vector<std::byte>>> said_to(schema::RankAsk::Reader ask,
                                                      rank_store& store) {
  if (ask.isGet()) {
    auto get = ask.getGet();
    auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(get.getWaitMs());
    return store.get(std::string_view(get.getKey().cStr()), until);
  }
  if (!ask.isSet()) return {};
  auto set = ask.getSet();
  auto done = store.set(std::string_view(set.getKey().cStr()), bytes_of(set.getValue()));
  if (!done) return result<std::vector<std::byte>>(done.why());
  return result<std::vector<std::byte>>(std::vector<std::byte>());
}

}  // namespace

result<key_bytes> join_engine(rank_line& line, const rank_claim& claim) {
  auto said = say_ask(line, [&](schema::RankAsk::Builder b) {
    auto join = b.initJoin();
    join.setSlot(claim.slot);
    join.setEpoch(claim.epoch);
    join.setRank(uint16_t(claim.rank));
  });
  auto granted = hear_answer(line);
  if (!granted) return granted.why();
  key_bytes secret(rank_secret_bytes);
  if (!said || !line.receive(secret.bytes())) return fail("ranks: the engine's process is gone");
  line.wait_for_ever();
  return secret;
}

void say_end(rank_line& line, const std::string& why) {
  (void)say_ask(line, [&](schema::RankAsk::Builder b) { b.setEnds(why); });
}

result<void> asked_store::set(std::string_view key, bytes_view value) {
  (void)say_ask(line_, [&](schema::RankAsk::Builder b) {
    auto set = b.initSet();
    set.setKey(std::string(key));
    set.setValue(data_of(value));
  });
  auto done = hear_answer(line_);
  return done ? result<void>() : done.why();
}

result<std::vector<std::byte>> asked_store::get(std::string_view key, deadline until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  (void)say_ask(line_, [&](schema::RankAsk::Builder b) {
    auto get = b.initGet();
    get.setKey(std::string(key));
    get.setWaitMs(uint32_t(std::clamp<int64_t>(left.count(), 0, UINT32_MAX)));
  });
  return hear_answer(line_);
}

std::optional<rank_claim> hear_claim(rank_line& line) {
  auto ask = hear<schema::RankAsk>(line);
  if (!ask) return {};
  std::optional<rank_claim> claim;
  auto read = unpack(*ask, [&](schema::RankAsk::Reader r) {
    if (!r.isJoin()) return;
    auto join = r.getJoin();
    claim = {.slot = join.getSlot(), .epoch = join.getEpoch(), .rank = join.getRank()};
  });
  return read ? claim : std::nullopt;
}

bool refuse_claim(rank_line& line, const std::string& why) {
  return say_answer(line, fail("{}", why));
}

bool grant_claim(rank_line& line, const key_bytes& secret) {
  line.wait_for_ever();
  return say_answer(line, std::vector<std::byte>()) && line.send(secret.view());
}

std::string answer_rank(rank_line& line, rank_store& store) {
  std::string words;
  while (auto question = hear<schema::RankAsk>(line)) {
    std::optional<result<std::vector<std::byte>>> said;
    auto read = unpack(*question, [&](schema::RankAsk::Reader r) {
      if (r.isEnds()) words = r.getEnds().cStr();
      said = said_to(r, store);
    });
    if (!read || !said || !say_answer(line, *said)) break;
  }
  return words;
}

}  // namespace lethe
