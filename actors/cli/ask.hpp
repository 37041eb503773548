#pragma once

#include <CLI/CLI.hpp>

#include "actors/cluster/control_socket.hpp"

namespace lethe {

/// Which cluster a command means: a name, a cluster file, or, if empty, the only one that runs
/// here.
result<std::string> cluster_named(const std::string& word);

/// Asks it; calls `use` with its answer unless that is a refusal. The exit code.
int ask_and(const std::string& word, const std::function<void(schema::ControlAsk::Builder)>& fill,
            const std::function<int(schema::ControlAnswer::Reader)>& use);

/// "[CLUSTER]", the same for every command.
std::shared_ptr<std::string> add_cluster_option(CLI::App& to);

const char* word_of(schema::Phase p);

}  // namespace lethe
