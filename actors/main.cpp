#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "actors/cli/commands.hpp"
#include "actors/cli/unknown_command.hpp"
#include "runtime/telemetry/telemetry_log.hpp"

namespace lethe {

int refuse(const std::string& why) {
  // Not fmt::print, which throws where standard error is full or closed.
  std::fputs(fmt::format("lethe: {}\n", why).c_str(), stderr);
  return 1;
}

namespace {

/// What was printed has reached its reader, or that is an error of its own.
int finish(int code) {
  errno = 0;
  bool whole = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (whole || code != 0) return code;
  return refuse(fmt::format("cannot write to standard output: {}",
                            errno ? std::strerror(errno) : "not all of it was taken"));
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  lethe::end_quietly_when_uncaught();
  CLI::App app{"Lethe: private inference that forgets every request.", "lethe"};
  app.set_version_flag("--version", "lethe " LETHE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  int exit_code = 0;
  lethe::add_generate(app, exit_code);
  lethe::add_tokenize(app, exit_code);
  lethe::add_template(app, exit_code);
  lethe::add_model(app, exit_code);
  lethe::add_devices(app, exit_code);
  lethe::add_config(app, exit_code);
  lethe::add_keys(app, exit_code);
  lethe::add_log(app, exit_code);
  lethe::add_account(app, exit_code);
  lethe::add_up(app, exit_code);
  lethe::add_status(app, exit_code);
  lethe::add_changes(app, exit_code);
  lethe::add_trace(app, exit_code);
  lethe::add_tokens(app, exit_code);
  lethe::add_fetch(app, exit_code);
  lethe::add_chat(app, exit_code);
  lethe::add_proxy(app, exit_code);
  lethe::add_tap(app, exit_code);
  lethe::add_audit(app, exit_code);
  lethe::add_engine_process(app, exit_code);
  lethe::add_rank_process(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (auto why = lethe::unknown_command(app, argc, argv)) return lethe::refuse(*why), 2;
    return lethe::finish(app.exit(e) == 0 ? 0 : 2);
  } catch (const std::bad_alloc&) {
    return lethe::refuse("out of memory; see `lethe model inspect` for what a model needs");
  } catch (const std::system_error& e) {  // fmt's, where nobody reads standard output
    return lethe::refuse(std::string("cannot write to standard output: ") + e.code().message());
  }
  return lethe::finish(exit_code);
}
