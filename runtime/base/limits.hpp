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

// What a node opens: the plaintext, and the same with headers and the overhead of full chunks.
inline constexpr size_t sealed_plain_bytes_max = size_t{16} << 20;
inline constexpr size_t sealed_request_bytes_max = sealed_plain_bytes_max + (64 << 10);
inline constexpr size_t chunk_plain_bytes_max = 16384;  // draft-ietf-ohai-chunked-ohttp
inline constexpr size_t seal_nodes_max = 3;
inline constexpr size_t seals_remembered_max = size_t{1} << 24;

}  // namespace lethe::limits
