#include <fmt/format.h>

#include <cstdio>

#include "actors/cli/commands.hpp"
#include "actors/cli/config_picture.hpp"
#include "runtime/cluster/cluster_plan.hpp"
#include "runtime/config/check_config.hpp"
#include "runtime/config/reference.hpp"
#include "runtime/policy/policy_text.hpp"

namespace lethe {

namespace {

int check(const std::string& file) {
  auto checked = check_config(file, machine::here());
  for (const auto& problem : checked.config.problems()) fmt::print(stderr, "{}\n", problem);
  if (!checked.good()) {
    fmt::print(stderr, "lethe: {}: {} problem{}, nothing was started\n", file,
               checked.config.problems().size(), checked.config.problems().size() == 1 ? "" : "s");
    return 1;
  }
  print_cluster(checked);
  if (checked.is_service()) return 0;
  if (auto plan = cluster_plan::make(checked.config.get(), machine::here()); !plan)
    fmt::print("note: a good plan, but `lethe up` refuses it: {}\n", plan.why().text);
  return 0;
}

int tell_policy(const std::string& name, bool markdown) {
  if (name.empty()) {
    fmt::print("{}", markdown ? policy::table_markdown() : policy::table_text());
    return 0;
  }
  auto row = policy::look_up(name);
  if (!row) return refuse(row.why().text);
  fmt::print("{}", policy::row_text(**row));
  return 0;
}

void add_policy(CLI::App& config, int& exit_code) {
  auto* policy = config.add_subcommand(
      "policy", "Every optimization that is known of, and what each profile says to it");
  auto name = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  policy->add_option("NAME", *name, "all that is known of one");
  policy->add_flag("--markdown", *markdown, "the whole table, as docs/policy.md has it");
  policy->footer("Example:\n  lethe config policy prefix-cache");
  policy->callback([=, &exit_code] { exit_code = tell_policy(*name, *markdown); });
}

}  // namespace

void add_config(CLI::App& app, int& exit_code) {
  auto* config = app.add_subcommand("config", "Understand a cluster file without starting it");
  config->require_subcommand(1);
  auto file = std::make_shared<std::string>();
  auto* checks = config->add_subcommand(
      "check", "What would run where, what it needs, and all that is wrong with the file");
  checks->add_option("FILE", *file, "the cluster's TOML file")->required();
  checks->footer("Example:\n  lethe config check configs/one.toml");
  checks->callback([=, &exit_code] { exit_code = check(*file); });
  auto* keys = config->add_subcommand("keys", "Every key of a cluster file, with its default");
  keys->callback([&exit_code] {
    fmt::print("{}", config_reference());
    exit_code = 0;
  });
  add_policy(*config, exit_code);
}

}  // namespace lethe
