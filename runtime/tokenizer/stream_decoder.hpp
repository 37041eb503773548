#pragma once

#include "runtime/tokenizer/tokenizer.hpp"

namespace lethe {

/// Text of an answer while its ids arrive. Never emits half a character, and the pieces joined
/// are what `tokenizer::decode` makes of all ids. The tokenizer must outlive it.
class stream_decoder {
 public:
  stream_decoder(const tokenizer& t, bool skip_special, std::pmr::memory_resource* memory);

  /// Appends to `out` what is certain by now.
  void push(uint32_t id, std::pmr::string& out);
  /// Appends what was held back; ready for another answer afterwards.
  void flush(std::pmr::string& out);

 private:
  struct state;
  struct release {
    std::pmr::memory_resource* memory;
    void operator()(state* s) const;
  };
  std::unique_ptr<state, release> state_;
};

}  // namespace lethe
