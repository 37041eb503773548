#include "actors/cluster/rank_socket.hpp"

#include <sys/socket.h>

#include <optional>

#include "runtime/wire/message_limits.hpp"

namespace lethe {

namespace {

bool send_all(int fd, bytes_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes = bytes.subspan(size_t(sent));
  }
  return true;
}

bool receive_all(int fd, std::span<std::byte> bytes) {
  return ::recv(fd, bytes.data(), bytes.size(), MSG_WAITALL) == ssize_t(bytes.size());
}

/// A frame behind its length.
template <class Schema>
bool say(int fd, const wire<Schema>& m) {
  const auto size = uint32_t(m.frame.size());
  return send_all(fd, std::as_bytes(std::span(&size, 1))) && send_all(fd, m.frame);
}

template <class Schema>
std::optional<wire<Schema>> hear(int fd) {
  uint32_t size = 0;
  if (!receive_all(fd, std::as_writable_bytes(std::span(&size, 1)))) return {};
  if (size > frame_bytes_max<Schema>) return {};
  wire<Schema> m;
  m.frame.resize(size);
  if (!receive_all(fd, m.frame)) return {};
  return m;
}

result<std::vector<std::byte>> ask(int fd, const wire<schema::RankAsk>& question) {
  result<std::vector<std::byte>> value = fail("rank store: the engine's process is gone");
  if (!say(fd, question)) return value;
  auto answer = hear<schema::RankAnswer>(fd);
  if (!answer) return value;
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
std::optional<result<std::vector<std::byte>>> said_to(const wire<schema::RankAsk>& question,
                                                      rank_store& store) {
  std::optional<result<std::vector<std::byte>>> said;
  auto read = unpack(question, [&](schema::RankAsk::Reader r) {
    const std::string key = r.getKey();
    if (r.isGetMs()) {
      said = store.get(key,
                       std::chrono::steady_clock::now() + std::chrono::milliseconds(r.getGetMs()));
      return;
    }
    auto done = store.set(key, bytes_of(r.getSet()));
    said = done ? result<std::vector<std::byte>>(std::vector<std::byte>()) : done.why();
  });
  return read ? said : std::nullopt;
}

}  // namespace

result<void> rank_socket::set(std::string_view key, bytes_view value) {
  auto done = ask(fd_, pack<schema::RankAsk>({}, [&](schema::RankAsk::Builder b) {
                    b.setKey(std::string(key));
                    b.setSet(data_of(value));
                  }));
  return done ? result<void>() : done.why();
}

result<std::vector<std::byte>> rank_socket::get(std::string_view key, deadline until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  return ask(fd_, pack<schema::RankAsk>({}, [&](schema::RankAsk::Builder b) {
               b.setKey(std::string(key));
               b.setGetMs(uint32_t(std::clamp<int64_t>(left.count(), 0, UINT32_MAX)));
             }));
}

void answer_rank(int fd, rank_store& store) {
  while (auto question = hear<schema::RankAsk>(fd)) {
    auto said = said_to(*question, store);
    if (!said) return;
    const auto answer = pack<schema::RankAnswer>({}, [&](schema::RankAnswer::Builder b) {
      if (*said)
        b.setValue(data_of(**said));
      else
        b.setWhy(said->why().text);
    });
    if (!say(fd, answer)) return;
  }
}

}  // namespace lethe
