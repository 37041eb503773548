#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "actors/cli/commands.hpp"
#include "runtime/model/convert.hpp"
#include "runtime/model/dtype_name.hpp"
#include "runtime/model/inspect.hpp"

namespace lethe {

namespace {

std::string size_text(uint64_t bytes) {
  if (bytes >= uint64_t{10} << 30) return fmt::format("{:.1f} GiB", double(bytes) / (1 << 30));
  if (bytes >= uint64_t{10} << 20) return fmt::format("{:.1f} MiB", double(bytes) / (1 << 20));
  return fmt::format("{:.1f} KiB", double(bytes) / (1 << 10));
}

std::string count_text(uint64_t n) {
  if (n >= 1'000'000'000) return fmt::format("{:.2f} billion", double(n) / 1e9);
  if (n >= 1'000'000) return fmt::format("{:.2f} million", double(n) / 1e6);
  return fmt::format("{}", n);
}

void print_row(const char* name, const std::string& value) {
  fmt::print("{:<12}{}\n", name, value);
}

void print_shape(const model_facts& m) {
  const auto& s = m.shape;
  print_row("family", fmt::format("{} ({})", s.family, m.gguf ? "GGUF" : "Hugging Face folder"));
  print_row("parameters", count_text(m.parameters));
  print_row("shape", fmt::format("{} layers, hidden {}, feed-forward {}, vocabulary {}", s.layers,
                                 s.hidden, s.ffn, s.vocab));
  print_row("attention",
            fmt::format("{} heads of {}, {} for keys and values{}{}", s.heads, s.head_dim,
                        s.kv_heads, s.qkv_bias ? ", biases" : "", s.qk_norm ? ", q/k norm" : ""));
  print_row("positions", fmt::format("context {}; {}; {}", s.context_max, m.rope, m.window));
  print_row("head", s.tied ? "tied to the embedding" : "its own");
}

void print_memory(const model_facts& m) {
  for (const auto& t : m.types)
    print_row("weights", fmt::format("{:<5} {:>10}, {} tensors", name_of(t.type),
                                     size_text(t.bytes), t.tensors));
  print_row("in memory", fmt::format("{} for weights (the file's precision, in panels)",
                                     size_text(m.weight_bytes)));
  for (const auto& kv : m.kv)
    print_row("", fmt::format("+ {:>10} for {} tokens of keys and values in {} ({} bytes a token)",
                              size_text(kv.bytes), m.context, kv.type, kv.bytes_per_token));
}

int inspect(const std::string& path, uint32_t context) {
  auto facts = inspect_model(path, context);
  if (!facts) return refuse(facts.why().text);
  if (facts->problems.empty()) {
    print_shape(*facts);
    print_memory(*facts);
    print_row("supported", "yes");
    return 0;
  }
  for (const auto& p : facts->problems) fmt::print("unsupported: {}\n", p);
  return 1;
}

int convert(const std::string& from, const std::string& to, const std::string& type_name,
            bool force) {
  auto type = dtype_named(type_name);
  if (!type) return refuse("--type: " + type.why().text);
  std::error_code ignored;
  if (!force && std::filesystem::exists(to, ignored))
    return refuse(to + ": exists already; choose another name, or --force");
  convert_options options{.type = *type,
                          .threads = std::max(1u, std::thread::hardware_concurrency())};
  bool live = isatty(STDERR_FILENO);
  if (live)
    options.progress = [](uint64_t done, uint64_t all) {
      fmt::print(stderr, "\rwriting {:3d} % of {} MiB", done * 100 / std::max<uint64_t>(all, 1),
                 all >> 20);
    };
  auto report = convert_to_gguf(from, to, options);
  if (live) fmt::print(stderr, "\r\x1b[K");
  if (!report) return refuse(report.why().text);
  for (const auto& name : report->kept)
    fmt::print(stderr, "lethe: {} became f16: its columns are no whole blocks of {}\n", name,
               type_name);
  fmt::print("{}: {} as {}\n", to, size_text(report->bytes), type_name);
  return 0;
}

void add_inspect(CLI::App& model, int& exit_code) {
  auto path = std::make_shared<std::string>();
  auto context = std::make_shared<uint32_t>(0);
  auto* command = model.add_subcommand(
      "inspect", "What a model is, what memory it needs, and all that is unsupported in it");
  command->add_option("PATH", *path, "Hugging Face folder or GGUF file")->required();
  command->add_option("--context", *context,
                      "tokens to reckon keys and values for; 0: the model's");
  command->callback([=, &exit_code] { exit_code = inspect(*path, *context); });
}

void add_convert(CLI::App& model, int& exit_code) {
  struct words {
    std::string from, to, type = "q8_0";
    bool force = false;
  };
  auto w = std::make_shared<words>();
  auto* command = model.add_subcommand("convert", "Write a Hugging Face folder as one GGUF file");
  command->add_option("FOLDER", w->from, "the model's folder")->required();
  command->add_option("FILE", w->to, "the .gguf file to write")->required();
  command->add_option("--type", w->type, "of the matrices: " + dtype_names())
      ->capture_default_str();
  command->add_flag("--force", w->force, "write over an existing file");
  command->footer("Example:\n  lethe model convert models/tiny tiny-q8_0.gguf --type q8_0");
  command->callback([=, &exit_code] { exit_code = convert(w->from, w->to, w->type, w->force); });
}

}  // namespace

void add_model(CLI::App& app, int& exit_code) {
  auto* model = app.add_subcommand("model", "Look at model files, convert them");
  model->require_subcommand(1);
  add_inspect(*model, exit_code);
  add_convert(*model, exit_code);
}

}  // namespace lethe
