#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "runtime/base/result.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load_needed.hpp"

namespace lethe {

struct load_options {
  /// Converts the float matrices of a checkpoint while loading; a matrix whose K the block does
  /// not divide keeps its type. Never applied to a file that is already quantized.
  std::optional<dtype> quantize;
  uint32_t threads = 1;
  /// Only what these ranks read is loaded; where the rest would lie is no memory.
  model_share share;
  /// Called from the loading thread with bytes done and in all.
  std::function<void(uint64_t, uint64_t)> progress;
  /// Once it is asked to stop, loading ends with the pieces at work, and fails.
  std::stop_token stop;
};

/// A model in memory: all weights repacked into panels in one sealed, read-only memfd that other
/// processes of the host can map too.
class loaded_model {
 public:
  static result<std::unique_ptr<loaded_model>> load(const checkpoint& from, const load_options&);
  /// The same model as another process of this host has loaded it: `memfd` is its, by another
  /// descriptor, which is ours from here on. No bytes are read or copied.
  static result<std::unique_ptr<loaded_model>> attach(const checkpoint& from, const load_options&,
                                                      int memfd);
  virtual ~loaded_model() = default;

  virtual const model_weights& weights() const = 0;
  /// Of the mapping.
  virtual size_t bytes() const = 0;
  virtual int memfd() const = 0;
  /// What kept its type under `quantize`, by name.
  virtual const std::vector<std::string>& unconverted() const = 0;
};

}  // namespace lethe
