#include <fmt/format.h>

#include "actors/cli/commands.hpp"
#include "actors/cluster/open_gateway.hpp"
#include "runtime/base/base64.hpp"
#include "runtime/client/trust_file.hpp"
#include "runtime/json/json_text.hpp"
#include "runtime/log/log_on_disk.hpp"
#include "runtime/publish/check_log_folder.hpp"
#include "runtime/publish/entry_facts.hpp"

namespace lethe {

namespace {

/// The folder that a cluster's file names, or itself.
result<published_folder> folder_of(const std::string& word) {
  if (!word.ends_with(".toml")) return published_folder::find(word);
  auto config = cluster_config::read(word);
  if (!config.problems().empty()) return error{config.problems().front()};
  if (!config.get().hasGateway())
    return fail("{}: has no [gateway], so nothing is published", word);
  return published_folder::find(publish_setup_of(config).folder);
}

json_text json() { return json_text(std::pmr::get_default_resource()); }

struct shown_entry {
  uint64_t index = 0;
  size_t bytes = 0;
  result<log_entry> entry;
  result<std::vector<entry_fact>> facts;

  static shown_entry of(uint64_t index, bytes_view bytes) {
    auto entry = log_entry::from_bytes(bytes);
    auto facts = entry ? facts_of(*entry) : entry.why();
    return {index, bytes.size(), std::move(entry), std::move(facts)};
  }
};

void show_text(const log_on_disk& log) {
  const auto& head = log.head().head;
  fmt::print("{}  {} entries  root {}\n", head.origin, head.size, to_base64(head.root));
  if (log.published())
    fmt::print("published: {} entries, {} signatures\n", log.published()->head.size,
               log.published()->signatures.size());
  fmt::print("{:>6}  {:<11}  {:>8}  {:>6}  {}\n", "INDEX", "KIND", "EPOCH", "BYTES", "SAYS");
  for (uint64_t i = 0; i < log.entries().size(); ++i) {
    auto e = shown_entry::of(i, log.entries()[i]);
    fmt::print("{:>6}  {:<11}  {:>8}  {:>6}  {}\n", e.index, e.entry ? name_of(e.entry->kind) : "?",
               e.entry ? fmt::format("{}", e.entry->epoch) : "?", e.bytes,
               e.facts ? text_of(*e.facts) : "not readable: " + e.facts.why().text);
  }
}

void write_entry(json_text& out, const shown_entry& e) {
  out.open('{').key("index").number(e.index).key("bytes").number(uint64_t{e.bytes});
  if (e.entry)
    out.key("kind").text(name_of(e.entry->kind)).key("epoch").number(uint64_t{e.entry->epoch});
  if (e.facts) {
    out.key("says").open('{');
    for (const auto& [name, value] : *e.facts) {
      out.key(name);
      if (auto* number = std::get_if<uint64_t>(&value))
        out.number(*number);
      else
        out.text(std::get<std::string>(value));
    }
    out.close('}');
  } else {
    out.key("problem").text(e.facts.why().text);
  }
  out.close('}');
}

void show_json(const log_on_disk& log) {
  auto out = json();
  const auto& head = log.head().head;
  out.open('{').key("log").text(head.origin).key("size").number(head.size);
  out.key("root").text(to_base64(head.root)).key("published");
  if (log.published())
    out.number(log.published()->head.size);
  else
    out.null();
  out.key("entries").open('[');
  for (uint64_t i = 0; i < log.entries().size(); ++i)
    write_entry(out, shown_entry::of(i, log.entries()[i]));
  out.close(']').close('}');
  fmt::print("{}\n", std::string_view(out.str()));
}

int show(const std::string& word, bool as_json) {
  auto folder = folder_of(word);
  if (!folder) return refuse(folder.why().text);
  auto log = log_on_disk::read(folder->log);
  if (!log) return refuse(log.why().text);
  (as_json ? show_json : show_text)(*log);
  if (log->entries().size() == log->head().head.size) return 0;
  return refuse(fmt::format("{}: {} whole entries are there, the head counts {}",
                            (folder->log / "entries").string(), log->entries().size(),
                            log->head().head.size));
}

void print_checks(const log_checks& checks, bool as_json) {
  if (!as_json) {
    for (const auto& [what, found] : checks.good) fmt::print("good  {:<10}  {}\n", what, found);
    return;
  }
  auto out = json();
  out.open('{').key("good").boolean(!checks.wrong).key("checks").open('[');
  for (const auto& [what, found] : checks.good)
    out.open('{').key("check").text(what).key("found").text(found).close('}');
  out.close(']');
  if (checks.wrong) out.key("problem").text(checks.wrong->text);
  fmt::print("{}\n", std::string_view(out.close('}').str()));
}

int verify(const std::string& word, const std::string& trust_path, bool as_json) {
  auto trust = trust_file::read(trust_path);
  if (!trust) return refuse(trust.why().text);
  auto folder = folder_of(word);
  if (!folder) return refuse(folder.why().text);
  auto checks = check_log_folder(*folder, trust->log);
  print_checks(checks, as_json);
  return checks.wrong ? refuse(checks.wrong->text) : 0;
}

struct log_words {
  std::string folder, trust;
  bool json = false;
};

void add_show(CLI::App& log, int& exit_code) {
  auto* shows = log.add_subcommand(
      "show", "Its entries: what clients were told, in order; also while the gateway runs");
  auto w = std::make_shared<log_words>();
  shows->add_option("FOLDER", w->folder, "a gateway's folder, its log, or the cluster's TOML file")
      ->required();
  shows->add_flag("--json", w->json, "for programs");
  shows->footer(
      "Shows what lies there and believes it: lethe log verify says whether it is right.\n"
      "Examples:\n"
      "  lethe log show configs/private.toml\n"
      "  lethe log show configs/state/gateway/log --json");
  shows->callback([=, &exit_code] { exit_code = show(w->folder, w->json); });
}

void add_verify(CLI::App& log, int& exit_code) {
  auto* verifies = log.add_subcommand(
      "verify",
      "Check all that it says against whom a trust file believes; 1 if anything is wrong");
  auto w = std::make_shared<log_words>();
  verifies
      ->add_option("FOLDER", w->folder, "a gateway's folder, its log, or the cluster's TOML file")
      ->required();
  verifies->add_option("--trust", w->trust, "a client's trust file: keys of the log and witnesses")
      ->required();
  verifies->add_flag("--json", w->json, "for programs");
  verifies->footer(
      "Prints a line for each check that held and ends at the first that does not: the log's\n"
      "signature, the root anew from every entry, the witnesses' signatures, that each kind's\n"
      "epochs rise by one, what each entry says, and every roster against its logged root.\n"
      "Says nothing of age, so it may be a copy.\n"
      "Example:\n"
      "  lethe log verify configs/state/gateway --trust client.toml");
  verifies->callback([=, &exit_code] { exit_code = verify(w->folder, w->trust, w->json); });
}

}  // namespace

void add_log(CLI::App& app, int& exit_code) {
  auto* log = app.add_subcommand("log", "The transparency log: what everybody was told alike");
  log->require_subcommand(1);
  add_show(*log, exit_code);
  add_verify(*log, exit_code);
}

}  // namespace lethe
