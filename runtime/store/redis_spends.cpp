#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "runtime/crypto/random.hpp"
#include "runtime/store/redis_link.hpp"
#include "runtime/store/spend_ledger.hpp"
#include "runtime/store/store_limits.hpp"

namespace lethe {
namespace {

// One hash a key: nonce -> outcome (a byte, 0 while open) ‖ change digest (32) ‖, while open, the
// mark (16) of who spent it. One set a gateway: the key ids and nonces that it has open. One set of
// all: the keys that are retired, of which another gateway may not have heard yet.

/// A spend that is asked once more because its answer was lost finds its own mark: it is fresh.
/// Tokens of a key whose hash was dropped count as spent.
constexpr const char* spend_script = R"lua(
if redis.call('SISMEMBER', KEYS[3], ARGV[4]) == 1 then return 0 end
local row = redis.call('HGET', KEYS[1], ARGV[1])
if row then return row == ARGV[2] and 1 or 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SADD', KEYS[2], ARGV[3])
return 1)lua";

/// ARGV[4]: only this row, unless it is empty. If it is not there its spend may still come, from a
/// connection that was given up: it then finds its token settled.
constexpr const char* settle_script = R"lua(
local row = redis.call('HGET', KEYS[1], ARGV[1])
if row and ARGV[4] ~= '' and row ~= ARGV[4] then return 0 end
redis.call('SREM', KEYS[2], ARGV[3])
if not row and ARGV[4] ~= '' then row = ARGV[4] end
if not row or row:byte(1) ~= 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. row:sub(2, 33))
return 1)lua";

constexpr const char* retired_set = "lethe:retired";
constexpr size_t digest_bytes = 32, mark_bytes = 16;
constexpr int tries_max = 4;
constexpr std::chrono::milliseconds first_pause{50};  // doubled with each try

std::string text_of(bytes_view b) { return std::string(as_text(b)); }

std::string hash_key(const hash32& key_id) {
  std::string name = "lethe:spent:";
  for (std::byte b : key_id) name += fmt::format("{:02x}", uint8_t(b));
  return name;
}

std::string member_of(const token_id& t) { return text_of(t.key_id) + text_of(t.nonce); }

token_id token_of(std::string_view member) {
  token_id t;
  const bytes_view b = as_bytes(member);
  std::copy_n(b.begin(), 32, t.key_id.begin());
  std::copy_n(b.begin() + 32, 32, t.nonce.begin());
  return t;
}

class redis_spends final : public spend_ledger {
 public:
  redis_spends(redis_place place, std::string_view gateway)
      : place_(std::move(place)), open_set_("lethe:open:" + std::string(gateway)) {}

  result<void> close_open() {
    for (;;) {
      auto open = ask({"SRANDMEMBER", open_set_, std::to_string(limits::drop_slice_rows)});
      if (!open) return open.why();
      if (open->size() == 0) return {};
      std::vector<redis_command> closing;
      for (size_t i = 0; i < open->size(); ++i) {
        if (open->text(i).size() != 64) return fail("{}: {} is damaged", place_.name(), open_set_);
        closing.push_back(settle({token_of(open->text(i)), outcome::node_failed}, ""));
      }
      if (auto done = ask_again(closing); !done) return done.why();
    }
  }

  result<void> commit(std::span<spend_entry> spends, std::span<const settlement> settles) override {
    std::vector<redis_command> all;
    for (const unsure& u : unsure_)
      all.push_back(settle({u.token, outcome::not_dispatched}, u.row));
    for (const settlement& s : settles) all.push_back(settle(s, ""));
    const size_t first = all.size();
    for (const spend_entry& s : spends) all.push_back(spend(s));
    auto replies = ask_again(all);
    if (!replies) {
      remember_unsure(spends, std::span(all).subspan(first));
      return replies.why();
    }
    unsure_.clear();
    for (size_t i = 0; i < spends.size(); ++i)
      spends[i].fresh = (*replies)[first + i].number() == 1;
    return {};
  }

  result<change_state> state(const token_id& token) override {
    const redis_command both[] = {{"HGET", hash_key(token.key_id), text_of(token.nonce)},
                                  {"SISMEMBER", retired_set, text_of(token.key_id)}};
    auto replies = ask_again(both);
    if (!replies) return replies.why();
    const redis_reply& row = (*replies)[0];
    if (row.nil() && (*replies)[1].number() == 1)
      return change_state{change_state::what::delivered};  // nothing is due any more
    if (row.nil()) return change_state{};
    const bytes_view b = as_bytes(row.text());
    if (b.size() < 1 + digest_bytes) return fail("{}: a row is damaged", place_.name());
    if (b[0] == std::byte{0}) return change_state{change_state::what::open};
    if (b[0] == std::byte(outcome::delivered)) return change_state{change_state::what::delivered};
    change_state due{change_state::what::due};
    std::copy_n(b.begin() + 1, digest_bytes, due.change_digest.begin());
    return due;
  }

  result<uint64_t> count(const hash32& key_id) override {
    auto reply = ask({"HLEN", hash_key(key_id)});
    if (!reply) return reply.why();
    return uint64_t(reply->number());
  }

  /// All at once: Redis frees them on a thread of its own.
  result<bool> drop_some(const hash32& key_id) override {
    const redis_command both[] = {{"SADD", retired_set, text_of(key_id)},
                                  {"UNLINK", hash_key(key_id)}};
    auto replies = ask_again(both);
    if (!replies) return replies.why();
    return false;
  }

 private:
  /// A spend whose answer never came. Only its own row is given back: the token may be another's.
  struct unsure {
    token_id token;
    std::string row;
  };

  using clock = std::chrono::steady_clock;

  static constexpr size_t row_at = 7;  // in what follows
  redis_command spend(const spend_entry& s) {
    std::array<std::byte, mark_bytes> mark;
    fill_random(mark);
    return {"EVAL",
            spend_script,
            "3",
            hash_key(s.token.key_id),
            open_set_,
            retired_set,
            text_of(s.token.nonce),
            std::string(1, '\0') + text_of(s.change_digest) + text_of(mark),
            member_of(s.token),
            text_of(s.token.key_id)};
  }
  redis_command settle(const settlement& s, std::string only) {
    return {"EVAL",
            settle_script,
            "2",
            hash_key(s.token.key_id),
            open_set_,
            text_of(s.token.nonce),
            std::string(1, char(s.is)),
            member_of(s.token),
            std::move(only)};
  }
  void remember_unsure(std::span<const spend_entry> spends, std::span<redis_command> asked) {
    for (size_t i = 0; i < spends.size() && unsure_.size() < limits::spends_unsure_max; ++i)
      unsure_.push_back({spends[i].token, std::move(asked[i][row_at])});
  }

  result<redis_reply> ask(redis_command command) {
    auto replies = ask_again(std::span<const redis_command>(&command, 1));
    if (!replies) return replies.why();
    return std::move((*replies)[0]);
  }
  /// Over as many connections as it takes, within bounds: what is asked may be asked twice. A
  /// server that hangs is waited for once.
  result<std::vector<redis_reply>> ask_again(std::span<const redis_command> commands) {
    const auto last = clock::now() + std::chrono::seconds(limits::redis_answer_s);
    auto pause = first_pause;
    for (int left = tries_max;; --left, pause *= 2) {
      auto there = reach();
      if (there) {
        auto replies = link_->ask(commands);
        if (replies || link_->alive()) return replies;
        there = replies.why();
      }
      link_.reset();
      if (left == 1 || clock::now() >= last) return there.why();
      std::this_thread::sleep_for(pause);
    }
  }
  result<void> reach() {
    if (link_) return {};
    auto link = redis_link::connect(place_);
    if (!link) return link.why();
    link_ = *std::move(link);
    return recognise();
  }
  /// A server that came back without what it held would take each token once more.
  result<void> recognise() {
    std::array<std::byte, 16> made;
    fill_random(made);
    const redis_command ask_id[] = {{"SET", "lethe:store", text_of(made), "NX"},
                                    {"GET", "lethe:store"}};
    auto replies = link_->ask(ask_id);
    if (!replies) return replies.why();
    if (id_.empty()) id_ = (*replies)[1].text();
    if ((*replies)[1].text() == id_) return {};
    return fail("{}: not the store that it was; restore its files, then start again",
                place_.name());
  }

  redis_place place_;
  std::string open_set_;
  std::string id_;  // of the store, from the first connection on
  std::optional<redis_link> link_;
  std::vector<unsure> unsure_;
};

}  // namespace

result<std::unique_ptr<spend_ledger>> open_redis_spends(std::string_view url,
                                                        std::string_view gateway) {
  auto place = redis_place::parse(url);
  if (!place) return place.why();
  auto spends = std::make_unique<redis_spends>(*std::move(place), gateway);
  if (auto ok = spends->close_open(); !ok) return ok.why();
  return std::unique_ptr<spend_ledger>(std::move(spends));
}

}  // namespace lethe
