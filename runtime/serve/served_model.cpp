#include "runtime/serve/served_model.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace lethe {

std::vector<uint32_t> own_stop_ids(const generation_defaults& defaults, const tokenizer* words) {
  std::vector<uint32_t> ids = defaults.eos_ids;
  if (!words) return ids;
  if (ids.empty() && words->eos()) ids.push_back(*words->eos());
  if (words->eot()) ids.push_back(*words->eot());
  return ids;
}

std::vector<uint32_t> tool_mark_ids(tool_format format, const tokenizer& words) {
  std::vector<uint32_t> ids;
  for (std::string_view mark : marks_of(format))
    if (auto id = words.id_of(mark); id && words.is_special(*id)) ids.push_back(*id);
  return ids;
}

namespace {

result<load_options> with_type(load_options how, const std::string& quantize) {
  if (quantize.empty()) return how;
  auto type = dtype_named(quantize);
  if (!type) return type.why();
  how.quantize = *type;
  return how;
}

}  // namespace

result<std::unique_ptr<loaded_model>> load_weights(const checkpoint& model,
                                                   const std::string& quantize, load_options how) {
  auto options = with_type(std::move(how), quantize);
  if (!options) return options.why();
  if (options->threads == 0) options->threads = std::max(1u, std::thread::hardware_concurrency());
  return loaded_model::load(model, *options);
}

result<std::unique_ptr<file_weights>> open_weights(const checkpoint& model,
                                                   const std::string& quantize) {
  auto options = with_type({}, quantize);
  if (!options) return options.why();
  return file_weights::open(model, options->quantize);
}

result<std::unique_ptr<loaded_model>> attach_weights(const checkpoint& model,
                                                     const std::string& quantize, int memfd) {
  auto options = with_type({}, quantize);
  if (!options) return options.why();
  return loaded_model::attach(model, *options, memfd);
}

sampling with_defaults(const sampling_wishes& w, const generation_defaults& d) {
  sampling how;
  how.temperature = w.temperature.value_or(d.temperature.value_or(how.temperature));
  how.top_k = w.top_k.value_or(d.top_k.value_or(how.top_k));
  how.top_p = w.top_p.value_or(d.top_p.value_or(how.top_p));
  how.min_p = w.min_p.value_or(d.min_p.value_or(how.min_p));
  how.typical_p = w.typical_p.value_or(d.typical_p.value_or(how.typical_p));
  how.repetition_penalty =
      w.repetition_penalty.value_or(d.repetition_penalty.value_or(how.repetition_penalty));
  return how;
}

uint64_t random_seed() {
  std::random_device entropy;
  return uint64_t{entropy()} << 32 | entropy();
}

namespace {

std::string name_from(const std::filesystem::path& path) {
  auto clean = path.lexically_normal();
  return clean.has_filename() ? clean.stem().string() : clean.parent_path().filename().string();
}

/// What requests read of a model beside its weights.
struct model_words {
  tokenizer words;
  std::optional<opened_template> chat;
  std::unique_ptr<const token_trie> trie;
};

result<model_words> open_words(const std::filesystem::path& path) {
  auto words = open_tokenizer(path);
  if (!words) return words.why();
  std::optional<opened_template> chat;
  if (auto own = open_template(path, *words)) chat = *std::move(own);
  auto trie = std::make_unique<const token_trie>(*words);
  return model_words{*std::move(words), std::move(chat), std::move(trie)};
}

/// None for devices: they get them from the file.
result<std::unique_ptr<loaded_model>> load(const checkpoint& model, const model_options& o,
                                           std::stop_token stop) {
  if (o.on_devices) return std::unique_ptr<loaded_model>();
  return load_weights(
      model, o.quantize,
      {.threads = o.threads, .share = o.share, .progress = o.progress, .stop = stop});
}

}  // namespace

result<std::shared_ptr<const served_model>> served_model::open(const model_options& o) {
  auto model = checkpoint::open(o.path);
  if (!model) return model.why();
  auto [words, weights] =
      read_while_loading([&] { return open_words(o.path); },
                         [&](std::stop_token stop) { return load(*model, o, std::move(stop)); });
  if (!words) return words.why();
  if (!weights) return weights.why();
  auto marks = tool_mark_ids(words->chat ? words->chat->tools : tool_format::none, words->words);
  auto stops = own_stop_ids(model->defaults(), &words->words);
  auto made = std::make_shared<served_model>(
      served_model{o.name.empty() ? name_from(o.path) : o.name, *std::move(model),
                   std::move(words->words), std::move(words->chat), *std::move(weights), nullptr,
                   std::move(words->trie), std::move(marks), std::move(stops)});
  if (o.on_devices) {
    auto file = open_weights(made->model, o.quantize);
    if (!file) return file.why();
    made->file = *std::move(file);
  }
  return std::shared_ptr<const served_model>(std::move(made));
}

}  // namespace lethe
