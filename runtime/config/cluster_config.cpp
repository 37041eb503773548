#include "runtime/config/cluster_config.hpp"

#include "runtime/base/mapped_file.hpp"

namespace lethe {

namespace {

constexpr size_t file_bytes_max = size_t{1} << 20;

}  // namespace

cluster_config::cluster_config(const std::filesystem::path& file)
    : file_(file), message_(std::make_unique<capnp::MallocMessageBuilder>()) {
  message_->initRoot<schema::Config>();
}

cluster_config cluster_config::read(const std::filesystem::path& file) {
  auto text = read_text(file, file_bytes_max);
  if (text) return parse(*text, file);
  cluster_config unread(file);
  unread.facts_.problems.push_back(text.why().text);
  return unread;
}

cluster_config cluster_config::parse(std::string_view toml, const std::filesystem::path& file) {
  cluster_config made(file);
  made.facts_ = map_toml(toml, file.string(), made.message_->getRoot<schema::Config>());
  return made;
}

cluster_config cluster_config::of(schema::Config::Reader from) {
  cluster_config made("/cluster");
  made.message_ = std::make_unique<capnp::MallocMessageBuilder>();
  made.message_->setRoot(from);
  return made;
}

std::string cluster_config::where(const std::string& key) const {
  return fmt::format("{}:{}: {}: ", file_.string(), facts_.line_of(key), key);
}

std::filesystem::path cluster_config::resolve(std::string_view path) const {
  return (file_.parent_path() / path).lexically_normal();
}

}  // namespace lethe
