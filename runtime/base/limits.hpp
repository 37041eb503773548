#pragma once

#include <cstddef>
#include <cstdint>

/// Bounds on what we accept. Each is tested at, above and below.
namespace lethe::limits {

inline constexpr size_t json_file_bytes_max = size_t{64}
                                              << 20;  // tokenizer.json of 256k entries: 35 MB
inline constexpr uint32_t vocab_max = 1u << 20;
inline constexpr uint32_t layers_max = 1024;
inline constexpr uint32_t hidden_max = 1u << 17;
inline constexpr uint32_t heads_max = 1024;
inline constexpr uint32_t context_max = 1u << 24;
inline constexpr uint32_t tensor_dims_max = 4;
inline constexpr uint64_t tensors_max = 1u << 20;

inline constexpr uint32_t page_tokens_max = 64;
inline constexpr uint32_t step_tokens_max = 1u << 16;
inline constexpr uint32_t running_max = 4096;
inline constexpr uint32_t choices_max = 128;  // n
inline constexpr uint32_t logprobs_max = 128;
inline constexpr uint32_t stops_max = 64;
inline constexpr uint32_t stop_bytes_max = 4096;
inline constexpr uint32_t logit_bias_max = 1024;

inline constexpr size_t template_bytes_max = size_t{1} << 20;
inline constexpr size_t template_output_bytes_max = size_t{64} << 20;
inline constexpr uint64_t template_steps_max = 10'000'000;

// Forms of answers: what their texts may ask of us while they are compiled ...
inline constexpr size_t grammar_bytes_max = size_t{256} << 10;  // a grammar, schema or pattern
inline constexpr uint32_t grammar_rules_max = 1u << 14;
inline constexpr uint32_t grammar_nodes_max = 1u << 17;
inline constexpr uint32_t grammar_repeat_max = 10'000;
inline constexpr uint32_t grammar_nesting_max = 64;     // groups in groups
inline constexpr uint64_t grammar_steps_max = 1 << 24;  // about 0.1 s of compiling
// ... and while a token is chosen.
inline constexpr uint32_t grammar_depth_max = 256;    // rules open inside each other
inline constexpr uint32_t grammar_stacks_max = 1024;  // ways to go on that are open at once
inline constexpr uint64_t grammar_mask_steps_max = 1 << 22;

}  // namespace lethe::limits
