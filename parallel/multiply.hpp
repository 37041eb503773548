#pragma once

#include <atomic>
#include <span>

#include "kernels/cpu_row.hpp"
#include "parallel/cut.hpp"
#include "parallel/word.hpp"

namespace lethe {

/// Some rows of a weight times the same input as its neighbours'.
struct product {
  const matrix* weight;
  range rows;
  range of_segments;
  const float* bias;  // of the whole weight, or null
  float* y;           // y[row * stride + (n - rows.begin)]
  size_t stride;
};

/// Products of one input. Their panels are laid end to end.
struct multiplication {
  const cpu_row& row;
  std::span<const product> products;
  const activations& x;
  uint32_t panels;

  multiplication(const cpu_row& r, std::span<const product> p, const activations& input);
};

/// What one rank multiplies, again and again: panels are taken by its threads as they get free, so
/// that one that the machine holds up does not hold up the others for long, and by those of ranks
/// beside it that have none left.
class panel_queue {
 public:
  /// `spin`: while others finish what they took, as a team's threads do.
  explicit panel_queue(bool spin) : spin_(spin) {}

  /// How far a thread of the rank has come.
  struct place {
    uint32_t turn;
    uint64_t done;
  };
  place here() const;

  /// Every thread of the rank calls this with the same, and they meet before they call it again.
  /// Returns when nobody, of `others` neither, works on it any more.
  void multiply(place& at, const multiplication& m, uint32_t threads,
                std::span<panel_queue* const> others);

 private:
  void open(place& at, const multiplication& m);
  void take(const multiplication* mine, uint32_t threads);
  void wait(const place& at);

  // Of the turn that is open: its number, its panels, and how many of these are taken.
  alignas(64) std::atomic<uint64_t> state_ = 0;
  std::atomic<const multiplication*> now_ = nullptr;
  std::atomic<uint64_t> done_ = 0;  // panels, of all turns
  word finished_;
  const bool spin_;
};

}  // namespace lethe
