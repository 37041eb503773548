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

/// What `inspect` says, whole before it is printed, so that a closed pipe stops it in one place.
class sheet {
 public:
  void row(const char* name, const std::string& value) {
    text_ += fmt::format("{:<12}{}\n", name, value);
  }
  void print() const { std::fwrite(text_.data(), 1, text_.size(), stdout); }

 private:
  std::string text_;
};

void add_shape(const model_facts& m, sheet& to) {
  const auto& s = m.shape;
  to.row("family", fmt::format("{} ({})", s.family, m.gguf ? "GGUF" : "Hugging Face folder"));
  to.row("parameters", count_text(m.parameters));
  to.row("shape", fmt::format("{} layers, hidden {}, feed-forward {}, vocabulary {}", s.layers,
                              s.hidden, s.ffn, s.vocab));
  to.row("attention",
         fmt::format("{} heads of {}, {} for keys and values{}{}", s.heads, s.head_dim, s.kv_heads,
                     s.qkv_bias ? ", biases" : "", s.qk_norm ? ", q/k norm" : ""));
  std::string positions = fmt::format("context {}", s.context_max);
  if (!m.rope.empty()) positions += "; " + m.rope;
  to.row("positions", positions);
  if (!m.window.empty()) to.row("window", m.window);
  to.row("head", s.tied ? "tied to the embedding" : "its own");
}

std::string types_text(const std::vector<type_share>& types) {
  std::string text;
  for (const auto& t : types)
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", t.type, t.tensors);
  return text;
}

void add_types(const model_facts& m, sheet& to) {
  for (const auto& t : m.types)
    to.row("weights", fmt::format("{:<5} {:>10}, {} tensors", t.type,
                                  t.bytes ? size_text(t.bytes) : "?", t.tensors));
  for (const auto& p : m.parts) to.row("", fmt::format("{:<20}{}", p.part, types_text(p.types)));
}

void add_memory(const model_facts& m, sheet& to) {
  to.row("in memory", m.weight_bytes
                          ? fmt::format("{} for weights (the file's precision, in panels)",
                                        size_text(m.weight_bytes))
                          : "? for weights");
  for (const auto& kv : m.kv)
    to.row("", fmt::format("+ {:>10} for {} tokens of keys and values in {} ({} bytes a token)",
                           size_text(kv.bytes), m.context, kv.type, kv.bytes_per_token));
  if (m.context > m.shape.context_max)
    to.row("", fmt::format("({} tokens are beyond the model's context of {})", m.context,
                           m.shape.context_max));
}

int inspect(const std::string& path, uint32_t context) {
  auto facts = inspect_model(path, context);
  if (!facts) return refuse(facts.why().text);
  sheet out;
  add_shape(*facts, out);
  add_types(*facts, out);
  add_memory(*facts, out);
  out.row("supported", facts->problems.empty() ? "yes" : "no:");
  for (const auto& p : facts->problems) out.row("", p);
  out.print();
  return facts->problems.empty() ? 0 : 1;
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
  if (!report->kept.empty())
    fmt::print(stderr,
               "lethe: {} of the matrices ({}{}) became f16: their columns are no whole "
               "blocks of {}\n",
               report->kept.size(), report->kept[0], report->kept.size() > 1 ? ", ..." : "",
               type_name);
  // Not fmt::print, which throws where the reader has gone.
  std::fputs(fmt::format("{}: {} as {}\n", to, size_text(report->bytes), type_name).c_str(),
             stdout);
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
