#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/batch/engine.hpp"

namespace lethe {

/// What `lethe generate` was asked, as it was written.
struct generate_flags {
  std::string model;
  // The prompt: one of these.
  std::optional<std::string> prompt, ids, chat;
  std::string template_path, variables, tools;
  bool no_special = false;
  // The answer.
  sampling how;
  std::optional<uint64_t> seed;
  sampling_wishes wishes;
  std::vector<std::string> stop, bias;
  std::vector<logit_bias> biases;  // of `bias`
  std::vector<uint32_t> stop_ids;
  std::string schema_path, grammar_path, pattern;
  bool json_object = false;
  std::optional<uint32_t> max_tokens, logprobs;
  uint32_t choices = 1;
  bool prompt_logprobs = false, ignore_eos = false, include_stop = false;
  // How it is computed.
  engine_config engine;
  std::string isa, arithmetic = "exact", quant, kv = "f32", template_text;
  uint64_t kv_megabytes = 0;
  bool json = false, quiet = false;

  std::vector<std::string_view> stops() const { return {stop.begin(), stop.end()}; }
};

/// Declares them all on `command`, with their help.
void declare(CLI::App& command, generate_flags& flags);
/// Fills flags.engine from the words: --isa, --kv, ...
result<void> understand(generate_flags& flags);

}  // namespace lethe
