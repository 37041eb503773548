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

result<load_options> options_for(const std::string& quantize) {
  load_options options;
  if (quantize.empty()) return options;
  auto type = dtype_named(quantize);
  if (!type) return type.why();
  options.quantize = *type;
  return options;
}

}  // namespace

result<std::unique_ptr<loaded_model>> load_weights(const checkpoint& model,
                                                   const std::string& quantize, uint32_t threads,
                                                   std::function<void(uint64_t, uint64_t)> progress,
                                                   model_share share) {
  auto options = options_for(quantize);
  if (!options) return options.why();
  options->threads = threads ? threads : std::max(1u, std::thread::hardware_concurrency());
  options->progress = std::move(progress);
  options->share = std::move(share);
  return loaded_model::load(model, *options);
}

result<std::unique_ptr<file_weights>> open_weights(const checkpoint& model,
                                                   const std::string& quantize) {
  auto options = options_for(quantize);
  if (!options) return options.why();
  return file_weights::open(model, options->quantize);
}

result<std::unique_ptr<loaded_model>> attach_weights(const checkpoint& model,
                                                     const std::string& quantize, int memfd) {
  auto options = options_for(quantize);
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

/// Its weights in memory, or where a device gets them.
result<void> hold(served_model& m, const model_options& o) {
  if (o.on_devices) {
    auto file = open_weights(m.model, o.quantize);
    if (!file) return file.why();
    m.file = *std::move(file);
    return {};
  }
  auto weights = load_weights(m.model, o.quantize, o.threads, o.progress, o.share);
  if (!weights) return weights.why();
  m.weights = *std::move(weights);
  return {};
}

}  // namespace

result<std::shared_ptr<const served_model>> served_model::open(const model_options& o) {
  auto model = checkpoint::open(o.path);
  if (!model) return model.why();
  auto words = open_tokenizer(o.path);
  if (!words) return words.why();
  std::optional<opened_template> chat;
  if (auto own = open_template(o.path)) chat = *std::move(own);
  auto marks = tool_mark_ids(chat ? chat->tools : tool_format::none, *words);
  auto stops = own_stop_ids(model->defaults(), &*words);
  auto made = std::make_shared<served_model>(served_model{
      o.name.empty() ? name_from(o.path) : o.name, *std::move(model), *std::move(words),
      std::move(chat), nullptr, nullptr, nullptr, std::move(marks), std::move(stops)});
  if (auto held = hold(*made, o); !held) return held.why();
  made->trie = std::make_unique<const token_trie>(made->words);
  return std::shared_ptr<const served_model>(std::move(made));
}

}  // namespace lethe
