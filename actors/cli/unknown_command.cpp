#include "actors/cli/unknown_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/similar.hpp"

namespace lethe {

namespace {

// What is a table of a file, and no command.
constexpr std::string_view parts[] = {"gateway", "issuer", "relay", "witness"};

constexpr size_t differ_most = 2;  // two letters that changed places

}  // namespace

std::optional<std::string> unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  const auto* const* end = argv + argc;
  const auto* const* at = std::find_if(argv + 1, end, [](const char* w) { return *w != '-'; });
  if (at == end) return {};
  const std::string word = *at;
  auto commands = app.get_subcommands([](const CLI::App* c) { return !c->get_name().empty(); });
  if (std::ranges::find(commands, word, &CLI::App::get_name) != commands.end()) return {};
  std::vector<std::string> shown;
  for (const CLI::App* c : commands)
    if (!c->get_group().empty()) shown.push_back(c->get_name());
  auto none = fmt::format("there is no command \"{}\"", word);
  if (std::ranges::find(parts, word) != std::end(parts))
    return fmt::format("{}; {} {} is `lethe up FILE` with a table [{}]", none,
                       word == "issuer" ? "an" : "a", word, word);
  if (auto meant = most_similar(word, shown, differ_most))
    return fmt::format("{}; did you mean \"{}\"?", none, *meant);
  return none + "; lethe --help names them";
}

}  // namespace lethe
