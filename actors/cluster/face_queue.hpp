#pragma once

#include <functional>
#include <mutex>
#include <variant>
#include <vector>

#include "actors/cluster/messages.hpp"
#include "runtime/api/api_error.hpp"
#include "runtime/http/http_server.hpp"

namespace lethe {

/// What the HTTP thread tells the face, in order. The face is stirred once for many.
class face_queue final : public http_handler {
 public:
  struct came {
    http_server* from;
    http_request request;
  };
  struct gone {
    uint64_t id;
  };
  struct took {
    uint64_t id;
    size_t bytes;
  };
  struct done {
    uint64_t id;
  };
  /// Something that was waited for elsewhere has come.
  struct errand {
    std::function<void()> run;
  };
  using event = std::variant<came, gone, took, done, errand>;

  void arrived(http_server& from, http_request r) override { put(came{&from, std::move(r)}); }
  void left(uint64_t id) override { put(gone{id}); }
  void drained(uint64_t id, size_t bytes) override { put(took{id, bytes}); }
  void sent(uint64_t id) override { put(done{id}); }

  /// To be run on the actor's own turn; never, once that is gone.
  void post(std::function<void()> run) { put(errand{std::move(run)}); }

  void wake(face_actor who) {
    std::lock_guard guard(lock_);
    face_ = std::move(who);
    if (!events_.empty()) caf::anon_send(face_, stirred::value);
  }
  std::vector<event> take() {
    std::lock_guard guard(lock_);
    return std::exchange(events_, {});
  }
  /// The face is gone: whoever asks from here on hears so at once.
  void close() {
    std::lock_guard guard(lock_);
    face_ = nullptr;
    closed_ = true;
    for (auto& e : events_) turn_away(e);
    events_.clear();
  }

 private:
  static void turn_away(event& e) {
    auto* asked = std::get_if<came>(&e);
    if (!asked) return;
    http_answer head{.status = 503};
    head.fields.emplace_back("Retry-After", "1");
    asked->from->answer(asked->request.id, std::move(head),
                        to_json(api_error{.status = 503,
                                          .type = "server_error",
                                          .code = "cluster_leaving",
                                          .message = "the cluster is going down"}));
  }
  void put(event e) {
    std::lock_guard guard(lock_);
    if (closed_) return turn_away(e);
    events_.push_back(std::move(e));
    if (events_.size() == 1 && face_) caf::anon_send(face_, stirred::value);
  }

  std::mutex lock_;
  std::vector<event> events_;
  face_actor face_;
  bool closed_ = false;
};

}  // namespace lethe
