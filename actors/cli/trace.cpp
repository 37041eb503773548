#include <fmt/format.h>

#include "actors/cli/commands.hpp"
#include "actors/cli/trace_replay.hpp"
#include "actors/cli/trace_source.hpp"
#include "runtime/base/whole_file.hpp"
#include "runtime/trace/trace_export.hpp"
#include "runtime/trace/trace_text.hpp"

namespace lethe {

namespace {

int print(const std::string& text) {
  fmt::print("{}", text);
  return 0;
}

void add_list(CLI::App& to, int& exit_code) {
  auto* list = to.add_subcommand("list", "Requests, the newest last");
  auto source = add_trace_source(*list);
  auto last = std::make_shared<size_t>(20);
  list->add_option("--last", *last, "so many")->check(CLI::PositiveNumber)->capture_default_str();
  list->callback([=, &exit_code] {
    exit_code =
        with_timeline(*source, [&](const timeline& t) { return print(list_text(t, *last)); });
  });
}

void add_follow(CLI::App& to, int& exit_code) {
  auto* follow = to.add_subcommand("follow", "One request, message by message");
  auto source = add_trace_source(*follow);
  auto id = std::make_shared<std::string>("last");
  auto whole = std::make_shared<bool>(false);
  follow->add_option("ID", *id, "the beginning of its id, or last")->capture_default_str();
  follow->add_flag("--all", *whole, "also what repeats");
  follow->callback([=, &exit_code] {
    exit_code = with_request(*source, *id, [&](const timeline& t, const traced_request& r) {
      return print(follow_text(t, r, *whole));
    });
  });
}

void add_slow(CLI::App& to, int& exit_code) {
  auto* slow = to.add_subcommand("slow", "How long each kind of message waits and takes");
  auto source = add_trace_source(*slow);
  auto by = std::make_shared<std::string>("handling");
  slow->add_option("--by", *by, "what to sort by")
      ->check(CLI::IsMember({"queue", "handling"}))
      ->capture_default_str();
  slow->callback([=, &exit_code] {
    exit_code = with_timeline(*source, [&](const timeline& t) {
      return print(slow_text(t, *by == "queue" ? slow_by::queue : slow_by::handling));
    });
  });
}

void add_stuck(CLI::App& to, int& exit_code) {
  auto* stuck = to.add_subcommand("stuck", "Requests that don't end, and queues that grow");
  auto source = add_trace_source(*stuck);
  auto least = std::make_shared<double>(0);
  stuck->add_option("--silent", *least, "only where nothing happened for so many seconds")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  stuck->callback([=, &exit_code] {
    exit_code = with_timeline(
        *source, [&](const timeline& t) { return print(stuck_text(t, int64_t(*least * 1e9))); });
  });
}

void add_save(CLI::App& to, int& exit_code) {
  auto* save = to.add_subcommand("save", "Keep all records in a file, for --from");
  auto source = add_trace_source(*save);
  auto file = std::make_shared<std::string>();
  save->add_option("FILE", *file)->required();
  save->callback([=, &exit_code] { exit_code = save_recording(*source, *file); });
}

void add_replay(CLI::App& to, int& exit_code) {
  auto* again =
      to.add_subcommand("replay", "Run the recorded requests again, in a simulated cluster");
  auto source = add_trace_source(*again);
  again->add_option("FILE", source->file, "a file of lethe trace save; none: a running cluster");
  again->footer(
      "The cluster's own actors in virtual time, with made-up content of the recorded lengths.\n"
      "Says where order differs from the record, and whether what must hold held after each "
      "message.\n"
      "The exit code is 1 where either is not so.");
  again->callback([=, &exit_code] { exit_code = with_timeline(*source, replay_recording); });
}

/// A side of a comparison: a recording or a request.
result<trace_side> side_of(const trace_source& source, const std::string& word,
                           std::optional<timeline>& own, std::optional<timeline>& common) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(word, ignored)) {
    auto read = read_recording(word);
    if (!read) return read.why();
    own = make_timeline(*std::move(read));
    return trace_side{&*own};
  }
  if (!common) {
    auto read = load_timeline(source);
    if (!read) return read.why();
    common = *std::move(read);
  }
  auto found = find_request(*common, word);
  if (!found) return found.why();
  return trace_side{&*common, *found};
}

void add_diff(CLI::App& to, int& exit_code) {
  auto* diffs = to.add_subcommand("diff", "Two recordings, or two requests, side by side");
  auto source = add_trace_source(*diffs);
  auto a = std::make_shared<std::string>(), b = std::make_shared<std::string>();
  diffs->add_option("A", *a, "a file of lethe trace save, or a request's id")->required();
  diffs->add_option("B", *b, "what to compare it with")->required();
  diffs->callback([=, &exit_code] {
    std::optional<timeline> of_a, of_b, common;
    auto left = side_of(*source, *a, of_a, common);
    if (!left) return void(exit_code = refuse(left.why().text));
    auto right = side_of(*source, *b, of_b, common);
    if (!right) return void(exit_code = refuse(right.why().text));
    exit_code = print(diff_text(*left, *right));
  });
}

int write_text(const std::string& path, const std::string& text) {
  auto written = write_whole_file(path, as_bytes(text));
  return written ? 0 : refuse(written.why().text);
}

void add_export(CLI::App& to, int& exit_code) {
  auto* exports = to.add_subcommand("export", "For other programs that show traces");
  auto source = add_trace_source(*exports);
  auto perfetto = std::make_shared<std::string>(), otlp = std::make_shared<std::string>();
  auto id = std::make_shared<std::string>();
  exports->add_option("ID", *id, "only this request");
  auto* one = exports->add_option("--perfetto", *perfetto, "a file for ui.perfetto.dev");
  auto* other = exports->add_option("--otlp", *otlp, "a file of OTLP/JSON spans");
  one->excludes(other);
  exports->callback([=, &exit_code] {
    if (perfetto->empty() == otlp->empty())
      return void(exit_code = refuse("trace export: write --perfetto FILE or --otlp FILE"));
    auto write = [&](const timeline& t, const traced_request* only) {
      fmt::print(stderr, "{}", gaps_text(t));
      return perfetto->empty() ? write_text(*otlp, otlp_json(t, only))
                               : write_text(*perfetto, perfetto_json(t, only));
    };
    if (id->empty())
      exit_code = with_timeline(*source, [&](const timeline& t) { return write(t, nullptr); });
    else
      exit_code = with_request(
          *source, *id, [&](const timeline& t, const traced_request& r) { return write(t, &r); });
  });
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  auto* trace =
      app.add_subcommand("trace", "Which messages actors told each other, and where time went");
  trace->require_subcommand(1);
  trace->footer(
      "Records are numbers: who told whom which kind of message, when, and how long that took.\n"
      "Example:\n  lethe trace follow last");
  add_list(*trace, exit_code);
  add_follow(*trace, exit_code);
  add_slow(*trace, exit_code);
  add_stuck(*trace, exit_code);
  add_save(*trace, exit_code);
  add_replay(*trace, exit_code);
  add_diff(*trace, exit_code);
  add_export(*trace, exit_code);
}

}  // namespace lethe
