#pragma once

#include <hiredis.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/base/secret_bytes.hpp"

namespace lethe {

struct redis_place {
  std::string host, socket;  // one of them
  uint16_t port = 6379;
  uint32_t db = 0;
  secret_bytes password;

  /// redis://[:password@]host[:port][/db] or unix:/path
  static result<redis_place> parse(std::string_view url);
  std::string name() const;  // without the password
};

using redis_command = std::vector<std::string>;

struct redis_freer {
  void operator()(redisContext* c) const { redisFree(c); }
  void operator()(void* reply) const { freeReplyObject(reply); }
};

/// What Redis answered, and never an error.
class redis_reply {
 public:
  explicit redis_reply(redisReply* r) : reply_(r) {}
  bool nil() const { return reply_->type == REDIS_REPLY_NIL; }
  int64_t number() const { return reply_->integer; }
  std::string_view text() const { return {reply_->str, reply_->str ? reply_->len : 0}; }
  size_t size() const { return reply_->element ? reply_->elements : 0; }
  std::string_view text(size_t i) const {
    const redisReply& r = *reply_->element[i];
    return {r.str, r.str ? r.len : 0};
  }

 private:
  std::unique_ptr<redisReply, redis_freer> reply_;
};

/// A connection to a Redis that has written to its disk what it answers for: authenticated, the
/// database chosen, its settings checked. Used by one thread at a time;
/// the program ignores SIGPIPE.
class redis_link {
 public:
  static result<redis_link> connect(const redis_place& place);

  /// All at once; their answers in order. After an error any of them may have been done; whether
  /// the link can be used again is in alive().
  result<std::vector<redis_reply>> ask(std::span<const redis_command> commands);
  result<redis_reply> ask(redis_command command);
  bool alive() const { return context_ && context_->err == 0; }

 private:
  redis_link(std::string name, redisContext* c) : name_(std::move(name)), context_(c) {}
  result<void> enter(const redis_place& place);
  result<void> check_durable();
  result<std::string> setting(const char* key);
  result<void> require(const char* key, std::string_view wanted);
  std::string name_;
  std::unique_ptr<redisContext, redis_freer> context_;
};

}  // namespace lethe
