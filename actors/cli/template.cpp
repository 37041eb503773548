#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <memory_resource>

#include "actors/cli/commands.hpp"
#include "actors/cli/read_input.hpp"
#include "runtime/serve/open_model.hpp"

namespace lethe {

namespace {

struct template_flags {
  std::string model, input = "-", tools, variables, bos, eos;
  bool no_generation_prompt = false;
  int64_t now = -1;
};

result<std::string> optional_input(const std::string& path) {
  if (path.empty()) return std::string();
  if (path.front() == '[' || path.front() == '{') return path;
  return read_input(path);
}

int run(const template_flags& flags) {
  auto opened = open_template(flags.model);
  if (!opened) return refuse(opened.why().text);
  auto messages = read_input(flags.input);
  if (!messages) return refuse(messages.why().text);
  auto tools = optional_input(flags.tools);
  if (!tools) return refuse(tools.why().text);
  auto variables = optional_input(flags.variables);
  if (!variables) return refuse(variables.why().text);
  auto text =
      opened->program.render({.messages = *messages,
                              .tools = *tools,
                              .variables = *variables,
                              .bos_token = flags.bos.empty() ? opened->bos_token : flags.bos,
                              .eos_token = flags.eos.empty() ? opened->eos_token : flags.eos,
                              .add_generation_prompt = !flags.no_generation_prompt,
                              .now = flags.now < 0 ? std::time(nullptr) : std::time_t(flags.now)},
                             std::pmr::get_default_resource());
  if (!text) return refuse(text.why().text);
  std::fwrite(text->data(), 1, text->size(), stdout);
  return 0;
}

}  // namespace

void add_template(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<template_flags>();
  auto* command = app.add_subcommand("template", "Render messages with a model's chat template");
  command->add_option("--model", flags->model, "model folder, GGUF file or bare .jinja file")
      ->required();
  command->add_option("FILE", flags->input, "the messages as JSON; - is standard input")
      ->capture_default_str();
  command->add_option("--tools", flags->tools, "tool list as JSON, or a file with it");
  command->add_option("--variables", flags->variables,
                      "further variables as a JSON object, or a file with it");
  command->add_option("--bos", flags->bos, "bos_token, where the file has none (bare .jinja)");
  command->add_option("--eos", flags->eos, "eos_token, likewise");
  command->add_flag("--no-generation-prompt", flags->no_generation_prompt,
                    "do not open the assistant's turn at the end");
  command->add_option("--now", flags->now, "time for strftime_now, seconds since 1970 UTC");
  command->footer(
      "Example:\n"
      "  echo '[{\"role\":\"user\",\"content\":\"Hello\"}]' | lethe template --model models/tiny");
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace lethe
