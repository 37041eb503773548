#include "runtime/store/redis_link.hpp"

#include <charconv>

#include "runtime/store/store_limits.hpp"

namespace lethe {
namespace {

constexpr timeval patience{limits::redis_answer_s, 0};  // for a connection, and for an answer

template <class Number>
bool read_number(std::string_view text, Number& to) {
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), to);
  return wrong == std::errc() && end == text.data() + text.size();
}

error bad_url(std::string_view why) {
  return fail("a store's URL: {}; write redis://[:password@]host[:port][/db] or unix:/path", why);
}

/// The first word: what follows it may quote what was sent.
std::string_view kind_of_error(std::string_view text) {
  return text.substr(0, std::min(text.find(' '), size_t{32}));
}

result<void> read_place(std::string_view rest, redis_place& place) {
  if (auto slash = rest.rfind('/'); slash != rest.npos) {
    if (!read_number(rest.substr(slash + 1), place.db)) return bad_url("the database is no number");
    rest = rest.substr(0, slash);
  }
  if (auto colon = rest.rfind(':'); colon != rest.npos && !rest.ends_with(']')) {
    if (!read_number(rest.substr(colon + 1), place.port) || place.port == 0)
      return bad_url("the port is no number of 1 to 65535");
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) return bad_url("it names no host");
  place.host = rest;
  return {};
}

}  // namespace

result<redis_place> redis_place::parse(std::string_view url) {
  redis_place place;
  constexpr std::string_view tcp = "redis://", local = "unix:";
  if (url.starts_with(local)) {
    place.socket = url.substr(local.size());
    if (!place.socket.starts_with('/')) return bad_url("a socket's path begins with /");
    return place;
  }
  if (!url.starts_with(tcp)) return bad_url("it is of no kind that is known");
  url.remove_prefix(tcp.size());
  if (auto at = url.rfind('@'); at != url.npos) {
    auto given = url.substr(0, at);
    if (!given.starts_with(':')) return bad_url("users are not known, only a password");
    given.remove_prefix(1);
    if (given.empty() || given.size() > limits::redis_password_max)
      return bad_url(fmt::format("a password has 1 to {} bytes", limits::redis_password_max));
    place.password = secret_bytes(as_bytes(given));
    url.remove_prefix(at + 1);
  }
  if (auto ok = read_place(url, place); !ok) return ok.why();
  return place;
}

std::string redis_place::name() const {
  if (!socket.empty()) return fmt::format("unix:{}", socket);
  return fmt::format("redis://{}:{}/{}", host, port, db);
}

result<redis_link> redis_link::connect(const redis_place& place) {
  redisContext* c = place.socket.empty()
                        ? redisConnectWithTimeout(place.host.c_str(), place.port, patience)
                        : redisConnectUnixWithTimeout(place.socket.c_str(), patience);
  redis_link link(place.name(), c);
  if (!link.alive())
    return fail("{}: cannot connect: {}", link.name_, c ? c->errstr : "no memory is left");
  if (redisSetTimeout(c, patience) != REDIS_OK)
    return fail("{}: cannot bound how long an answer may take", link.name_);
  if (auto ok = link.enter(place); !ok) return ok.why();
  if (auto ok = link.check_durable(); !ok) return ok.why();
  return link;
}

result<void> redis_link::enter(const redis_place& place) {
  if (place.password.size() > 0) {
    redis_command auth{"AUTH", std::string(as_text(place.password.view()))};
    auto entered = ask(std::span<const redis_command>(&auth, 1));
    wipe(auth[1].data(), auth[1].size());
    if (!entered) return entered.why();
  }
  if (place.db == 0) return {};
  auto chosen = ask({"SELECT", std::to_string(place.db)});
  if (!chosen) return chosen.why();
  return {};
}

result<std::string> redis_link::setting(const char* key) {
  auto reply = ask({"CONFIG", "GET", key});
  if (!reply) return reply.why();
  if (reply->size() != 2) return fail("{}: does not tell its {}", name_, key);
  return std::string(reply->text(1));
}

result<void> redis_link::require(const char* key, std::string_view wanted) {
  auto is = setting(key);
  if (!is) return is.why();
  if (*is == wanted) return {};
  return fail("{}: {} is {}, so that spent tokens could be lost; set it to {} in redis.conf", name_,
              key, *is, wanted);
}

/// Nothing that it has answered for may be lost: not with its power, not while it rewrites its
/// file, not for want of memory, and not to a replica that lags behind and takes over.
result<void> redis_link::check_durable() {
  for (auto [key, wanted] :
       {std::pair("appendonly", "yes"), std::pair("appendfsync", "always"),
        std::pair("no-appendfsync-on-rewrite", "no"), std::pair("maxmemory-policy", "noeviction")})
    if (auto ok = require(key, wanted); !ok) return ok;
  auto info = ask({"INFO", "replication"});
  if (!info) return info.why();
  if (info->text().find("role:master\r") == std::string_view::npos)
    return fail("{}: a replica; name the master", name_);
  if (info->text().find("connected_slaves:0\r") == std::string_view::npos)
    return fail("{}: has replicas, which could take over without the last spends; use one without",
                name_);
  return {};
}

result<redis_reply> redis_link::ask(redis_command command) {
  auto replies = ask(std::span<const redis_command>(&command, 1));
  if (!replies) return replies.why();
  return std::move((*replies)[0]);
}

result<std::vector<redis_reply>> redis_link::ask(std::span<const redis_command> commands) {
  std::vector<const char*> parts;
  std::vector<size_t> sizes;
  for (const redis_command& command : commands) {
    parts.clear();
    sizes.clear();
    for (const std::string& part : command) {
      parts.push_back(part.data());
      sizes.push_back(part.size());
    }
    redisAppendCommandArgv(context_.get(), int(parts.size()), parts.data(), sizes.data());
  }
  std::vector<redis_reply> replies;
  std::string refused;
  for (size_t i = 0; i < commands.size(); ++i) {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK || !reply)
      return fail("{}: the connection was lost: {}", name_, context_->errstr);
    auto* told = static_cast<redisReply*>(reply);
    replies.emplace_back(told);
    if (told->type == REDIS_REPLY_ERROR) refused = kind_of_error(replies.back().text());
  }
  if (!refused.empty()) return fail("{}: refused, {}", name_, refused);
  return replies;
}

}  // namespace lethe
