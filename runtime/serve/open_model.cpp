#include "runtime/serve/open_model.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/model/gguf.hpp"
#include "runtime/model/gguf_vocab_read.hpp"

namespace lethe {

namespace fs = std::filesystem;

namespace {

result<std::string> read_if_there(const fs::path& path, size_t bytes_max) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::string();
  return read_text(path, bytes_max);
}

result<tokenizer> from_gguf_file(const fs::path& path) {
  auto file = gguf_file::open(path);
  if (!file) return file.why();
  auto vocab = read_vocab(*file);
  if (!vocab) return vocab.why();
  auto made = tokenizer::from_gguf(*vocab);
  if (!made) return fail("{}: {}", path.string(), made.why().text);
  return made;
}

std::string text_of(const tokenizer& t, std::optional<uint32_t> id) {
  return id ? std::string(t.token_text(*id)) : std::string();
}

result<opened_template> compile(const std::string& source, const fs::path& path, std::string bos,
                                std::string eos) {
  auto program = chat_template::compile(source);
  if (!program) return fail("{}: {}", path.string(), program.why().text);
  return opened_template{*std::move(program), std::move(bos), std::move(eos),
                         tool_format_of(source)};
}

}  // namespace

bool has_tokenizer(const fs::path& path) {
  std::error_code ignored;
  return !fs::is_directory(path, ignored) || fs::exists(path / "tokenizer.json", ignored);
}

result<tokenizer> open_tokenizer(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() == ".gguf") return from_gguf_file(path);
  fs::path folder = fs::is_directory(path, ignored) ? path : path.parent_path();
  fs::path file = fs::is_directory(path, ignored) ? path / "tokenizer.json" : path;
  auto json = read_text(file, limits::json_file_bytes_max);
  if (!json) return json.why();
  auto config = read_if_there(folder / "tokenizer_config.json", limits::json_file_bytes_max);
  if (!config) return config.why();
  auto made = tokenizer::from_json(*json, *config);
  if (!made) return fail("{}: {}", file.string(), made.why().text);
  return made;
}

result<opened_template> open_template(const fs::path& path, const tokenizer& words) {
  auto own = read_if_there(path / "chat_template.jinja", limits::template_bytes_max);
  if (!own) return own.why();
  std::string source = own->empty() ? std::string(words.chat_template()) : *std::move(own);
  if (source.empty())
    return fail("{}: has no chat template; pass the prompt as text, or a template with --template",
                path.string());
  return compile(source, path, text_of(words, words.bos()), text_of(words, words.eos()));
}

result<opened_template> open_template(const fs::path& path) {
  if (path.extension() == ".jinja") {
    auto source = read_text(path, limits::template_bytes_max);
    if (!source) return source.why();
    return compile(*source, path, {}, {});
  }
  auto words = open_tokenizer(path);
  if (!words) return words.why();
  return open_template(path, *words);
}

}  // namespace lethe
