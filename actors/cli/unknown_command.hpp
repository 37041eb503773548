#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace lethe {

/// What to say if the first word names no command: nothing, if it does or there is none.
std::optional<std::string> unknown_command(const CLI::App& app, int argc, const char* const* argv);

}  // namespace lethe
