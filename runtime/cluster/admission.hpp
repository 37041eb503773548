#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "schemas/messages.capnp.h"

namespace lethe {

/// Which engine a request goes to, and which requests each engine has. Pure; whoever sends and
/// receives is the scheduler's business.
class admission {
 public:
  struct engine {
    uint32_t epoch = 0;
    uint32_t capacity = 0;  // requests at once
    uint32_t held = 0;
    bool draining = false;
  };
  struct place {
    uint16_t engine = 0;
    uint32_t epoch = 0;
  };
  struct counts {
    uint64_t admitted = 0, turned_away = 0;
    uint64_t served = 0, refused = 0, cancelled = 0, failed = 0;
  };

  /// Replaces an earlier one of that id; its requests are lost and returned.
  std::vector<uint64_t> engine_ready(uint16_t id, uint32_t epoch, uint32_t capacity);
  void engine_draining(uint16_t id, uint32_t epoch);
  /// Its requests, which are lost.
  std::vector<uint64_t> engine_lost(uint16_t id, uint32_t epoch);

  /// The engine with the smallest share of its capacity taken holds the request from now on.
  /// Nothing: `why` says.
  std::optional<place> admit(uint64_t request, schema::Refusal& why);
  /// The same where the client chose: this engine holds it, or nobody does.
  std::optional<place> admit_at(uint64_t request, place chosen, schema::Refusal& why);
  /// Where a request is.
  std::optional<place> find(uint64_t request) const;
  /// A request ended; false: it is not known there (any more).
  bool release(uint64_t request, place from, schema::Outcome outcome);
  /// Nothing is admitted any more.
  void leave() { leaving_ = true; }

  const std::map<uint16_t, engine>& engines() const { return engines_; }
  size_t requests() const { return requests_.size(); }
  bool ready() const;

  counts total;

 private:
  std::optional<place> hold(uint64_t request, std::pair<const uint16_t, engine>& at);
  std::map<uint16_t, engine> engines_;
  std::unordered_map<uint64_t, place> requests_;
  bool leaving_ = false;
};

}  // namespace lethe
