#include "parallel/devices.hpp"

#include <fmt/format.h>

#include "actors/cli/commands.hpp"
#include "runtime/config/quantity.hpp"

namespace lethe {

namespace {

int list_devices() {
  auto all = devices_of_this_build()->all();
  if (!all) return refuse(all.why().text);
  for (size_t i = 0; i < all->size(); ++i)
    fmt::print("cuda:{}  {}  {}\n", i, bytes_text((*all)[i].memory), (*all)[i].model);
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "devices", "List this host's GPUs as cluster files name them, and what memory they have");
  command->footer(
      "A host says which of them its engines may use, and the memory of one:\n"
      "  [[hosts]]\n  devices = [\"cuda:0\", \"cuda:1\"]\n  device_memory = \"80 GiB\"");
  command->callback([&exit_code] { exit_code = list_devices(); });
}

}  // namespace lethe
