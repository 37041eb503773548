#pragma once

#include <functional>
#include <future>

#include "runtime/batch/engine.hpp"
#include "runtime/grammar/token_trie.hpp"
#include "runtime/model/file_weights.hpp"
#include "runtime/model/load.hpp"
#include "runtime/serve/open_model.hpp"

namespace lethe {

/// Reserved for a compiled form and its masks.
inline constexpr size_t form_bytes_max = size_t{256} << 20;

struct model_options {
  std::filesystem::path path;
  std::string name;      // what clients call it; empty: the folder's or file's name
  std::string quantize;  // "q8_0", ...; empty: as the file has it
  uint32_t threads = 0;  // for loading; 0: all cores
  model_share share;
  bool on_devices = false;  // then `file` instead of `weights`
  std::function<void(uint64_t, uint64_t)> progress;
};

/// A model as requests see it, opened once and shared by all of them.
struct served_model {
  std::string name;
  checkpoint model;
  tokenizer words;
  std::optional<opened_template> chat;  // none: /v1/chat/completions can't be served
  std::unique_ptr<loaded_model> weights;
  std::unique_ptr<const file_weights> file;  // of `model`
  std::unique_ptr<const token_trie> trie;    // of `words`, for answers with a form
  std::vector<uint32_t> tool_marks;          // control tokens that belong to a call
  std::vector<uint32_t> stop_ids;            // what ends an answer unless a request ignores it

  const model_weights& forms() const { return file ? file->weights() : weights->weights(); }
  tool_format call_format() const { return chat ? chat->tools : tool_format::none; }

  static result<std::shared_ptr<const served_model>> open(const model_options& options);
};

/// The ids that end an answer by the model's own files.
std::vector<uint32_t> own_stop_ids(const generation_defaults& defaults, const tokenizer* words);

/// Those marks of a format that the vocabulary has as control tokens.
std::vector<uint32_t> tool_mark_ids(tool_format format, const tokenizer& words);

/// The weights, converted to `quantize` if it names a type; by all cores, if `how` names no
/// threads.
result<std::unique_ptr<loaded_model>> load_weights(const checkpoint& model,
                                                   const std::string& quantize, load_options how);

/// What `read` and `load` return. `read` runs in a thread of its own, if there is one to be had;
/// `load` is stopped when it fails.
template <class Read, class Load>
auto read_while_loading(Read read, Load load) {
  std::stop_source stop;
  auto reading = std::async([&] {
    auto made = read();
    if (!made) stop.request_stop();
    return made;
  });
  auto loaded = load(stop.get_token());
  return std::pair(reading.get(), std::move(loaded));
}

/// The same weights where they lie, for devices. `model` outlives them.
result<std::unique_ptr<file_weights>> open_weights(const checkpoint& model,
                                                   const std::string& quantize);

/// The same weights where another process of this host has them.
result<std::unique_ptr<loaded_model>> attach_weights(const checkpoint& model,
                                                     const std::string& quantize, int memfd);

/// What a request leaves open, as the model's publisher samples from it.
sampling with_defaults(const sampling_wishes& wishes, const generation_defaults& defaults);

/// For requests that name no seed.
uint64_t random_seed();

}  // namespace lethe
