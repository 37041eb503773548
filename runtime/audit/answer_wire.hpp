#pragma once

#include <filesystem>
#include <random>

#include "runtime/audit/fingerprint.hpp"
#include "runtime/audit/played_engine.hpp"
#include "runtime/crypto/answer_shape.hpp"
#include "runtime/serve/sealed_call.hpp"

namespace lethe::audit {

/// What a model says to one prompt, and how long that takes. Times vary from one time to the next
/// as on a machine that has other things to do, the ids don't: who watches is given that.
struct known_answer {
  uint32_t prompt_tokens = 0;
  std::vector<uint32_t> ids;
  double step_ms = 8, prefill_ms_a_token = 0.1;
};

/// Answers of many lengths, from 8 tokens on, with tokens of that model's tokenizer.
std::vector<known_answer> make_answers(const served_model& model, uint32_t count,
                                       uint32_t tokens_most, uint64_t seed);

/// What is seen of one answer.
struct seen_answer {
  capture wire;                      // what passes the relay
  std::vector<piece_seen> messages;  // of the node: its pieces, sealed to the client
  double released_ms = 0;            // its arenas are gone, its place is free
  uint32_t request_bytes = 0;        // sealed
};

/// One node and its gateway, under a clock of their own: requests are sealed, opened, read,
/// planned, sampled, detokenized, written, cut into chunks, sealed and sealed again by the code
/// that serves. Played are what the ranks say and how long steps and the network take.
class answer_wire {
 public:
  static result<std::unique_ptr<answer_wire>> make(std::shared_ptr<const served_model> model);

  result<seen_answer> see(const known_answer& said, const answer_shape& shape,
                          std::mt19937_64& dice);

 private:
  struct exchange;
  explicit answer_wire(std::shared_ptr<const served_model> model) : model_(std::move(model)) {}
  result<std::vector<std::byte>> sealed_request_for(const known_answer& said, const node_public& to,
                                                    const answer_shape& shape) const;
  result<void> drive(exchange& x);

  std::shared_ptr<const served_model> model_;
  exchange* now_ = nullptr;  // the one that is being answered
  std::unique_ptr<played_engine> engine_;
};

}  // namespace lethe::audit
