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

// Binary HTTP. A request's fields are a few, and a token of 480 bytes.
inline constexpr uint32_t bhttp_fields_max = 64;              // of a section
inline constexpr size_t bhttp_section_bytes_max = 16u << 10;  // of field lines
inline constexpr size_t bhttp_control_bytes_max = 4096;  // method, scheme, authority, path: each
inline constexpr size_t bhttp_content_bytes_max = 64u << 20;  // unless the caller says less
inline constexpr uint32_t bhttp_informational_max = 8;        // before the final response

inline constexpr size_t template_bytes_max = size_t{1} << 20;
inline constexpr size_t template_output_bytes_max = size_t{64} << 20;
inline constexpr uint64_t template_steps_max = 10'000'000;

inline constexpr size_t answer_bytes_max = size_t{32} << 10;      // a sealed chunk and its frame
inline constexpr size_t control_bytes_max = size_t{64} << 20;     // records of a process
inline constexpr size_t control_ask_bytes_max = size_t{1} << 20;  // a whole cluster file
inline constexpr uint32_t answer_window = 16;  // pieces that a client has not taken
// What a node opens: the plaintext, and the same with headers and the overhead of full chunks.
inline constexpr size_t sealed_plain_bytes_max = size_t{16} << 20;
inline constexpr size_t sealed_request_bytes_max = sealed_plain_bytes_max + (64 << 10);
inline constexpr size_t chunk_plain_bytes_max = 16384;  // draft-ietf-ohai-chunked-ohttp
inline constexpr size_t seal_nodes_max = 3;
inline constexpr size_t seals_remembered_max = size_t{1} << 24;
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
