#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "actors/cli/audit_parts.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cluster/open_engine.hpp"
#include "runtime/audit/report.hpp"
#include "runtime/base/hex.hpp"

namespace lethe {

namespace {

namespace fs = std::filesystem;

bool is_wanted(const audit_words& words, const audit_part& p) {
  if (!words.trust.empty() && !p.outside) return false;
  return words.only.empty() || std::ranges::find(words.only, p.name) != words.only.end();
}

std::string machine_text() {
  utsname name{};
  ::uname(&name);
  return fmt::format("{} {} {}, {} cores", name.sysname, name.release, name.machine,
                     std::thread::hardware_concurrency());
}

std::string program_text() {
  const auto digest = program_digest();
  return "lethe " LETHE_VERSION ", sha256 " + to_hex(digest).substr(0, 16);
}

size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 40 ? size.ws_col : 100;
}

result<void> write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (file.flush()) return {};
  return fail("{}: cannot be written: {}", path.string(), std::strerror(errno));
}

result<void> write_reports(const audit::report& r, const std::string& folder) {
  if (folder.empty()) return {};
  if (auto json = write(fs::path(folder) / "audit.json", audit::as_json(r)); !json) return json;
  return write(fs::path(folder) / "audit.html", audit::as_html(r));
}

result<audit::report> audited(const audit_words& words) {
  audit_teller tell;
  audit::report r{
      .cluster = words.trust.empty()
                     ? "an embedded cluster: issuer, relay, gateway and engine on this machine"
                     : "the cluster of " + words.trust,
      .program = program_text(),
      .machine = machine_text(),
      .date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))};
  for (const auto& p : audit_parts()) {
    if (!is_wanted(words, p)) continue;
    auto found = p.run(words, tell);
    if (!found) return fail("{}: {}", p.name, found.why().text);
    for (auto& f : *found) r.findings.push_back(std::move(f));
  }
  r.seconds = tell.seconds();
  r.statements.push_back(
      "Receipts are statements of whoever holds the node's key: evidence is \"none\", so nobody "
      "vouches for what runs there.");
  return r;
}

result<void> check_words(const audit_words& words) {
  for (const auto& name : words.only)
    if (std::ranges::find(audit_parts(), name, &audit_part::name) == audit_parts().end())
      return fail("--only {}: there is no such part; see lethe audit --help", name);
  std::error_code none;
  if (!words.out.empty()) fs::create_directories(words.out, none);
  if (none) return fail("--out {}: {}", words.out, none.message());
  if (!words.trust.empty()) return {};
  if (!fs::exists(words.model, none))
    return fail("{}: no such model; name one with --model", words.model);
  if (!fs::exists(audit_controls(words), none))
    return fail(
        "{}: the programs without defences are missing; build all, or name their folder "
        "with --controls",
        audit_controls(words).string());
  return {};
}

int run(const audit_words& words) {
  if (auto good = check_words(words); !good) return refuse(good.why().text), 2;
  auto r = audited(words);
  if (!r) return refuse(r.why().text), 2;
  const auto text = words.json ? audit::as_json(*r) : audit::as_text(*r, terminal_columns());
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (auto written = write_reports(*r, words.out); !written) return refuse(written.why().text), 2;
  return r->stands() ? 0 : 1;
}

std::string footer() {
  std::string text =
      "Starts a cluster of its own, measures what Lethe promises, and repeats each measurement\n"
      "with a defence switched off: it must notice. With a trust file it looks at that cluster "
      "from\n"
      "outside, as its clients do, and spends nothing. The embedded one needs to read its own "
      "cluster's memory: root,\n"
      "or CAP_SYS_PTRACE. Returns 0 if every promise stands, 1 if one doesn't, 2 if it could not\n"
      "be measured.\n\nParts:\n";
  for (const auto& p : audit_parts()) text += fmt::format("  {:<12} {}\n", p.name, p.about);
  return text + "\nExample:\n  lethe audit --out report   # report/audit.html, report/audit.json";
}

}  // namespace

void add_audit(CLI::App& app, int& exit_code) {
  auto* audit = app.add_subcommand("audit", "Measure the promises, each with a control");
  auto words = std::make_shared<audit_words>();
  audit->add_option("TRUST", words->trust,
                    "trust file of a running cluster; only what a client can see is measured then");
  audit->add_option("--model", words->model, "what the cluster serves")
      ->capture_default_str()
      ->take_last();
  audit->add_option("--out", words->out, "a folder for audit.html and audit.json");
  audit->add_option("--only", words->only, "parts, as named below");
  audit->add_option("--controls", words->controls,
                    "folder of programs without a defence each; default: beside this one");
  audit->add_flag("--json", words->json, "the report as JSON");
  audit->add_flag("--quick", words->quick, "fewer requests, smaller samples");
  audit->footer(footer());
  audit->callback([=, &exit_code] { exit_code = run(*words); });
}

}  // namespace lethe
