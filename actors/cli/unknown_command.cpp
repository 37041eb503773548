#include "actors/cli/unknown_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lethe {

namespace {

// What is a table of a file, and no command.
constexpr std::string_view parts[] = {"gateway", "issuer", "relay", "witness"};

constexpr size_t near = 2;

/// How many letters must be put in, left out or changed.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string nearest(const std::vector<const CLI::App*>& commands, std::string_view word) {
  auto far = [word](const CLI::App* c) { return distance(c->get_name(), word); };
  const auto* best = *std::ranges::min_element(commands, {}, far);
  return far(best) <= near ? best->get_name() : "";
}

}  // namespace

std::optional<std::string> unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  const auto* const* end = argv + argc;
  const auto* const* at = std::find_if(argv + 1, end, [](const char* w) { return *w != '-'; });
  if (at == end) return {};
  const std::string word = *at;
  auto commands = app.get_subcommands([](const CLI::App* c) { return !c->get_name().empty(); });
  if (std::ranges::find(commands, word, &CLI::App::get_name) != commands.end()) return {};
  std::erase_if(commands, [](const CLI::App* c) { return c->get_group().empty(); });  // hidden
  auto none = fmt::format("there is no command \"{}\"", word);
  if (std::ranges::find(parts, word) != std::end(parts))
    return fmt::format("{}; {} {} is `lethe up FILE` with a table [{}]", none,
                       word == "issuer" ? "an" : "a", word, word);
  auto meant = nearest(commands, word);
  if (!meant.empty()) return fmt::format("{}; did you mean \"{}\"?", none, meant);
  return none + "; lethe --help names them";
}

}  // namespace lethe
