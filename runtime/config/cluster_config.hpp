#pragma once

#include <capnp/message.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "runtime/config/toml_mapper.hpp"
#include "schemas/config.capnp.h"

namespace lethe {

/// A cluster file as read: the message that its TOML filled, and all that is wrong with it so far.
class cluster_config {
 public:
  static cluster_config read(const std::filesystem::path& file);
  static cluster_config parse(std::string_view toml, const std::filesystem::path& file);

  /// One that was read elsewhere; its paths are absolute.
  static cluster_config of(schema::Config::Reader from);

  schema::Config::Reader get() const { return message_->getRoot<schema::Config>().asReader(); }
  const std::vector<std::string>& problems() const { return facts_.problems; }
  bool gives(const std::string& key) const { return facts_.lines.contains(key); }

  /// Adds a problem at the line of a key.
  template <class... Args>
  void refuse(const std::string& key, fmt::format_string<Args...> format, Args&&... args) {
    facts_.problems.push_back(where(key) + fmt::format(format, std::forward<Args>(args)...));
  }
  /// "FILE:LINE: KEY: "
  std::string where(const std::string& key) const;
  schema::Config::Builder edit() { return message_->getRoot<schema::Config>(); }
  /// A path of the file, which it gives relative to itself.
  std::filesystem::path resolve(std::string_view path) const;

 private:
  explicit cluster_config(const std::filesystem::path& file);

  std::filesystem::path file_;
  std::unique_ptr<capnp::MallocMessageBuilder> message_;
  toml_facts facts_;
};

}  // namespace lethe
