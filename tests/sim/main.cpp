#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/places.hpp"
#include "tests/sim/world.hpp"

namespace {

using namespace lethe;
using namespace lethe::sim;

constexpr unsigned wall_s_max = 120;  // of one seed
char again[128];                      // the line that repeats the run in hand
bool bug_wanted = false;

void say_again(const char* why) {
  auto put = [](const char* text) { (void)!::write(STDOUT_FILENO, text, std::strlen(text)); };
  put(why);
  put("\n");
  put(again);
  put("\n");
}

void on_signal(int which) {
  say_again(which == SIGALRM ? "no end in sight" : "a check failed, or worse");
  _exit(bug_wanted && which == SIGABRT ? 0 : 1);
}

run_report run_one(const run_options& options, const std::shared_ptr<const served_model>& model) {
  std::string line = fmt::format("lethe_sim --seed={}", options.seed);
  if (options.planted != bug::none)
    line += fmt::format(" --bug={}", bug_names[size_t(options.planted)]);
  std::strncpy(again, line.c_str(), sizeof again - 1);
  ::alarm(wall_s_max);
  // A run that failed leaves actors in any state: it is not taken apart.
  auto* w = new world(options, model);
  auto report = w->run();
  if (report.violation.empty()) delete w;
  ::alarm(0);
  return report;
}

struct spread {
  std::vector<uint64_t> all;
  void add(uint64_t n) { all.push_back(n); }
  void print(const char* what) {
    std::ranges::sort(all);
    uint64_t total = 0;
    for (uint64_t n : all) total += n;
    fmt::print("{:<20} least {:6}  median {:6}  most {:6}  in all {}\n", what, all.front(),
               all[all.size() / 2], all.back(), total);
  }
};

struct summary {
  spread messages, requests, engines, faults, time_ms;
  std::array<spread, fault_names.size()> by_fault;
  std::array<spread, ending_names.size()> by_ending;

  void add(const run_report& r) {
    messages.add(r.messages);
    requests.add(r.requests);
    engines.add(r.engines);
    time_ms.add(r.virtual_ms);
    uint64_t all = 0;
    for (size_t i = 0; i < r.faults.size(); ++i) {
      by_fault[i].add(r.faults[i]);
      all += r.faults[i];
    }
    faults.add(all);
    for (size_t i = 0; i < r.endings.size(); ++i) by_ending[i].add(r.endings[i]);
  }
  void print() {
    fmt::print("{} seeds; of each:\n", messages.all.size());
    messages.print("messages");
    time_ms.print("virtual ms");
    requests.print("requests");
    for (size_t i = 0; i < by_ending.size(); ++i)
      by_ending[i].print(fmt::format("  {}", ending_names[i]).c_str());
    engines.print("engines at once");
    faults.print("faults");
    for (size_t i = 0; i < by_fault.size(); ++i)
      by_fault[i].print(fmt::format("  {}", fault_names[i]).c_str());
  }
};

/// Seeds of a file, one a line; what follows a # is said of it.
std::vector<uint64_t> read_seeds(const std::string& file) {
  std::vector<uint64_t> seeds;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') seeds.push_back(std::stoull(line));
  return seeds;
}

int run_all(const std::vector<uint64_t>& seeds, run_options options, bool twice) {
  auto model = served_model::open(
      {.path = std::string(places::source) + "/models/tiny", .name = "tiny", .threads = 1});
  if (!model) {
    fmt::print("{}\n", model.why().text);
    return 1;
  }
  summary all;
  for (uint64_t seed : seeds) {
    options.seed = seed;
    auto report = run_one(options, *model);
    if (!report.violation.empty()) {
      fflush(stdout);
      say_again(report.violation.c_str());
      _exit(bug_wanted ? 0 : 1);
    }
    if (twice && run_one(options, *model).digest != report.digest) {
      say_again("the same seed gave another run");
      _exit(1);
    }
    all.add(report);
  }
  all.print();
  if (bug_wanted) fmt::print("the planted bug was not found\n");
  return bug_wanted ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs clusters by seeds: the same seed, the same run.");
  uint64_t seed = 1;
  std::string range, file, planted = "none";
  run_options options;
  bool twice = false;
  app.add_option("--seed", seed, "one run");
  app.add_option("--seeds", range, "A..B: a run each");
  app.add_option("--seeds-in", file, "a file with a seed a line");
  app.add_option("--bug", planted, "plants a mistake")
      ->check(CLI::IsMember(std::vector<std::string>(bug_names.begin(), bug_names.end())));
  app.add_flag("--expect-found", bug_wanted, "succeeds only if a run fails");
  app.add_flag("--twice", twice, "runs each seed twice and compares");
  app.add_flag("--trace", options.trace, "prints each message");
  CLI11_PARSE(app, argc, argv);
  options.planted = bug(std::ranges::find(bug_names, planted) - bug_names.begin());
  for (int which : {SIGABRT, SIGALRM, SIGSEGV}) signal(which, on_signal);
  std::vector<uint64_t> seeds{seed};
  if (!file.empty()) seeds = read_seeds(file);
  if (size_t dots = range.find(".."); dots != range.npos) {
    seeds.clear();
    uint64_t last = std::stoull(range.substr(dots + 2));
    for (uint64_t s = std::stoull(range.substr(0, dots)); s <= last; ++s) seeds.push_back(s);
  }
  return run_all(seeds, options, twice);
}
