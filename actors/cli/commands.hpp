#pragma once

#include <CLI/CLI.hpp>

namespace lethe {

/// Each adds a subcommand; `exit_code` is set when it ran.
void add_generate(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_template(CLI::App& app, int& exit_code);
void add_model(CLI::App& app, int& exit_code);
void add_devices(CLI::App& app, int& exit_code);
void add_config(CLI::App& app, int& exit_code);
void add_keys(CLI::App& app, int& exit_code);
void add_log(CLI::App& app, int& exit_code);
void add_account(CLI::App& app, int& exit_code);
void add_up(CLI::App& app, int& exit_code);
void add_status(CLI::App& app, int& exit_code);
void add_changes(CLI::App& app, int& exit_code);
void add_trace(CLI::App& app, int& exit_code);
void add_tokens(CLI::App& app, int& exit_code);
void add_fetch(CLI::App& app, int& exit_code);
void add_chat(CLI::App& app, int& exit_code);
void add_proxy(CLI::App& app, int& exit_code);
void add_tap(CLI::App& app, int& exit_code);
void add_audit(CLI::App& app, int& exit_code);
void add_engine_process(CLI::App& app, int& exit_code);
void add_rank_process(CLI::App& app, int& exit_code);

/// Prints one line to standard error; what a command returns when it could not do its work.
int refuse(const std::string& why);

}  // namespace lethe
