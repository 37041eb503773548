#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace lethe {

/// When a roster begins, whom it asks for a key, and when it is complete: a pure function of what
/// it is told. Times are in milliseconds of one clock.
class roster_turn {
 public:
  static constexpr uint64_t apart_ms = 5'000;     // of two rosters, whatever happens
  static constexpr uint64_t patience_ms = 2'000;  // with engines that owe their key

  /// Engines by slot, with the epoch of each.
  using engines = std::map<uint16_t, uint32_t>;
  struct question {
    uint32_t roster = 0;
    engines whom;
  };
  struct key {
    uint16_t slot = 0;
    std::vector<std::byte> node;
  };
  struct roster {
    uint32_t number = 0;
    std::vector<key> keys;  // by slot
  };

  /// From here on rosters are wanted; `published` is the last that was logged. Said again after
  /// each attempt to log one, and until then no other begins.
  void want(uint32_t published, uint64_t epoch_ms, uint64_t now);
  bool wanted() const { return epoch_ms_ > 0; }

  /// A roster begins: its time has come, or other engines serve than those that it has.
  std::optional<question> due(const engines& ready, uint64_t now);
  void answered(uint16_t slot, uint32_t epoch, uint32_t roster, std::vector<std::byte> node);
  /// Once for each question: whoever has answered, when all have or the patience is over.
  std::optional<roster> complete(uint64_t now);

 private:
  enum class phase : uint8_t { idle, asking, publishing };

  phase phase_ = phase::idle;
  uint64_t epoch_ms_ = 0;
  uint64_t begun_ms_ = 0;  // of the last question
  bool ever_ = false;      // there was one
  uint32_t published_ = 0;
  engines asked_, listed_;  // of the open question; of the roster that was published
  std::map<uint16_t, std::vector<std::byte>> heard_;
};

}  // namespace lethe
