#include "actors/audit/no_trace.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "actors/audit/canary.hpp"

namespace lethe::audit {

namespace {

/// What is not wiped is soon written over by something else, now and then.
constexpr size_t control_rounds = 3;
constexpr std::chrono::milliseconds rank_stopped{500};

/// A cluster that is searched after each request.
class searched_cluster {
 public:
  searched_cluster(std::unique_ptr<embedded_cluster> cluster, canary words)
      : cluster_(std::move(cluster)), words_(std::move(words)), finder_(words_.needles()) {}

  embedded_cluster& cluster() { return *cluster_; }
  const canary& words() const { return words_; }
  /// All memory, pipes and files, with everything stopped.
  std::vector<trace_of> search() {
    const auto found = cluster_->search(finder_);
    processes_ = std::max(processes_, cluster_->processes().size());
    looked_ = found.looked();
    return found.traces();
  }
  std::vector<trace_of> search_soon() {
    return soon_left([this] { return search(); });
  }
  std::string extent() const {
    return fmt::format("{} MiB of {} processes, {} descriptors, {} files", looked_.bytes >> 20,
                       processes_, looked_.descriptors, looked_.files);
  }
  const searched& looked() const { return looked_; }

 private:
  std::unique_ptr<embedded_cluster> cluster_;
  canary words_;
  needle_finder finder_;
  searched looked_;
  size_t processes_ = 0;
};

result<searched_cluster> begun(const embedded_settings& settings) {
  auto words = canary::draw(settings.model);
  if (!words) return words.why();
  auto cluster = embedded_cluster::start(settings);
  if (!cluster) return cluster.why();
  return searched_cluster(*std::move(cluster), *std::move(words));
}

std::string first_of(const std::vector<trace_of>& left) {
  if (left.empty()) return "0 traces";
  return fmt::format("{} traces, the first: {} in {}", left.size(), left[0].form, left[0].place);
}

/// What one kind of end left behind; the first that leaves something ends it.
struct ending {
  std::string what;
  size_t times = 0;
  std::vector<trace_of> left;
  std::string wrong;  // it could not be brought about
};

using bodies = std::vector<std::string>;

ending asked(searched_cluster& on, const char* what, const bodies& all,
             bool (*as_due)(const said&)) {
  ending e{.what = what};
  for (const auto& body : all) {
    auto s = on.cluster().ask(body);
    if (!as_due(s)) e.wrong = fmt::format("status {}: {}", s.status, s.why);
    ++e.times;
    e.left = on.search();
    if (!e.left.empty() || !e.wrong.empty()) break;
  }
  return e;
}

bool is_answered(const said& s) { return s.status == 200 && s.proof; }
bool is_refused(const said& s) { return s.status >= 400; }

/// The client goes in the middle of its answer.
ending leaving(searched_cluster& on) {
  ending e{.what = "client gone mid-answer", .times = 1};
  int pieces = 0;
  on.cluster().ask(on.words().endless(), "/v1/chat/completions", [&] { return ++pieces < 2; });
  if (pieces == 0) e.wrong = "no answer began";
  e.left = on.search_soon();
  return e;
}

/// A new engine is drawn as soon as a roster with it is out.
bool serves_again(searched_cluster& on) {
  for (int i = 0; i < 100; ++i) {
    auto s = on.cluster().ask(on.words().body(fmt::format(R"(,"max_tokens":1,"seed":{})", i)));
    if (s.proof) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return false;
}

/// An engine's process is killed in the middle of an answer. Its own memory goes with it.
ending killed(searched_cluster& on) {
  ending e{.what = "engine killed mid-answer", .times = 1};
  const auto engines = on.cluster().engines();
  bool done = false;
  auto s = on.cluster().ask(on.words().endless(), "/v1/chat/completions", [&] {
    if (!std::exchange(done, true))
      for (pid_t p : engines) ::kill(p, SIGKILL);
    return true;
  });
  if (!done || engines.empty()) e.wrong = "no answer began";
  if (s.proof) e.wrong = "the answer was whole";
  e.left = on.search_soon();
  if (!on.cluster().is_whole(std::chrono::seconds(60))) e.wrong = "it isn't whole again";
  if (!serves_again(on)) e.wrong = "it doesn't serve again";
  return e;
}

/// A rank's process is killed while the others wait for it, so that no answer is computed before.
ending rank_lost(searched_cluster& on) {
  ending e{.what = "one of them killed mid-answer", .times = 1};
  const pid_t rank = on.cluster().engines().back();
  ::kill(rank, SIGSTOP);
  std::jthread later([rank] {
    std::this_thread::sleep_for(rank_stopped);
    ::kill(rank, SIGKILL);
  });
  if (on.cluster().ask(on.words().endless()).proof) e.wrong = "the answer was whole";
  later.join();
  e.left = on.search_soon();
  if (!serves_again(on)) e.wrong = "it doesn't serve again";
  return e;
}

/// An actor that has to do with an answer throws in the middle of it, in a program made for that.
ending broken(searched_cluster& on, const std::string& actor) {
  ending e{.what = fmt::format("the {}'s actor threw mid-answer", actor), .times = 1};
  const auto order = on.cluster().folder() / "run" / "throws";
  bool ordered = false;
  auto s = on.cluster().ask(on.words().endless(), "/v1/chat/completions", [&] {
    if (!std::exchange(ordered, true)) std::ofstream(order) << actor;
    return true;
  });
  if (!ordered) e.wrong = "no answer began";
  if (std::filesystem::exists(order)) e.wrong = "nothing threw";
  if (s.proof) e.wrong = "the answer was whole";
  e.left = on.search_soon();
  if (!serves_again(on)) e.wrong = "it doesn't serve again";
  return e;
}

/// More at once than the engine has room for: most wait, pages change hands.
ending crowded(searched_cluster& on) {
  ending e{.what = "answered in a crowd", .times = 12};
  std::atomic<size_t> whole = 0;
  std::vector<std::string> why(e.times);
  {
    std::vector<std::jthread> clients;
    for (size_t i = 0; i < e.times; ++i)
      clients.emplace_back([&, i] {
        // Each a body of its own: one body is drawn for three times, no more.
        auto s = on.cluster().ask(
            on.words().body(fmt::format(R"(,"max_tokens":200,"ignore_eos":true,"seed":{})", i)));
        whole += s.proof.has_value();
        why[i] = s.why;
      });
  }
  for (const auto& w : why)
    if (!w.empty()) e.wrong = fmt::format("{} of {} answers are whole: {}", whole, e.times, w);
  e.left = on.search();
  return e;
}

/// The cluster is told to end in the middle of an answer, which it finishes first. Last of all.
ending drained(searched_cluster& on) {
  ending e{.what = "drained mid-answer", .times = 1};
  bool told = false;
  auto s = on.cluster().ask(on.words().endless(), "/v1/chat/completions", [&] {
    if (!std::exchange(told, true)) on.cluster().drain();
    return true;
  });
  if (!s.proof) e.wrong = "the answer is not whole: " + s.why;
  if (!on.cluster().drained(std::chrono::seconds(60))) e.wrong = "it does not end";
  e.left = on.search();
  return e;
}

/// In a cluster of its own: the real program throws nothing when it is told to.
result<void> thrown(const no_trace_settings& s, std::vector<ending>& all) {
  auto settings = s.cluster;
  settings.program = (s.controls / "lethe_throws").string();
  auto on = begun(settings);
  if (!on) return on.why();
  for (const char* actor : {"request", "engine"}) all.push_back(broken(*on, actor));
  return {};
}

/// In a cluster whose engine's ranks are two processes.
result<void> apart(const no_trace_settings& s, std::vector<ending>& all) {
  auto settings = s.cluster;
  settings.ranks = 2;
  auto on = begun(settings);
  if (!on) return on.why();
  auto answered = on->words().answered();
  answered.resize(2);
  all.push_back(asked(*on, "answered by ranks that are processes", answered, is_answered));
  all.push_back(rank_lost(*on));
  return {};
}

finding made(searched_cluster& on, const std::vector<ending>& all) {
  finding f{.promise = "S",
            .attacks = "A2 A3 A8",
            .what = "no trace of a request, however it ended",
            .bound = "0 traces",
            .said = verdict::held};
  size_t requests = 0, left = 0;
  std::string ways;
  for (const auto& e : all) {
    requests += e.times;
    left += e.left.size();
    ways += fmt::format("{}{} ({})", ways.empty() ? "" : ", ", e.what, e.times);
    if (!e.wrong.empty()) {
      f.said = verdict::not_measured;
      f.note += fmt::format("{}: {}. ", e.what, e.wrong);
    }
    if (!e.left.empty()) f.note += fmt::format("{}: {}. ", e.what, first_of(e.left));
  }
  if (left > 0) f.said = verdict::broken;
  f.measured =
      fmt::format("{} traces after {} requests: {}; {}", left, requests, ways, on.extent());
  f.note +=
      "Searched for: text and its halves, UTF-16, UTF-32, JSON escapes, base64 in each phase, "
      "runs of eight token ids of 16, 32 and 64 bits; all readable memory, pipes, open and "
      "deleted files, memory files, the cluster's folder.";
  if (on.looked().swapped > 0) {
    f.said = verdict::not_measured;
    f.note +=
        fmt::format(" {} bytes were swapped out and could not be searched.", on.looked().swapped);
  }
  return f;
}

/// The same search of a program that lacks one defence: the first requests that leave something.
control without(const no_trace_settings& s, const std::string& program, const std::string& what) {
  control c{.without = what};
  auto settings = s.cluster;
  settings.program = (s.controls / program).string();
  auto on = begun(settings);
  if (!on) {
    c.measured = "not run: " + on.why().text;
    return c;
  }
  const auto bodies = on->words().answered();
  for (size_t requests = 0; !c.found && requests < control_rounds * bodies.size();) {
    on->cluster().ask(bodies[requests % bodies.size()]);
    auto left = on->search();
    ++requests;
    c.found = !left.empty();
    c.measured = fmt::format("{} after {} requests", first_of(left), requests);
  }
  return c;
}

}  // namespace

result<finding> measure_no_trace(const no_trace_settings& s) {
  s.progress("starting a cluster");
  auto on = begun(s.cluster);
  if (!on) return on.why();
  auto answered = on->words().answered(), refused = on->words().refused();
  if (s.brief) {
    answered.resize(2);
    refused.resize(2);
  }
  std::vector<ending> all;
  s.progress("searching after answers");
  all.push_back(asked(*on, "answered", answered, is_answered));
  s.progress("searching after refusals");
  all.push_back(asked(*on, "refused", refused, is_refused));
  s.progress("searching after a client that left");
  all.push_back(leaving(*on));
  s.progress("searching after an engine was killed");
  all.push_back(killed(*on));
  s.progress("searching after a crowd");
  all.push_back(crowded(*on));
  s.progress("searching after a drain");
  all.push_back(drained(*on));
  s.progress("searching ranks that are processes");
  if (auto more = apart(s, all); !more) return more.why();
  s.progress("searching after an actor threw");
  if (auto more = thrown(s, all); !more) return more.why();
  auto f = made(*on, all);
  const std::pair<const char*, const char*> controls[] = {{"lethe_wipes_nothing", "wiping"},
                                                          {"lethe_passes_by_arenas", "arenas"},
                                                          {"lethe_frees_as_it_is", "zero-on-free"},
                                                          {"lethe_keeps_stacks", "wiped stacks"}};
  for (auto [program, what] : controls) {
    s.progress(fmt::format("the same without {}", what));
    f.controls.push_back(without(s, program, what));
  }
  return f;
}

}  // namespace lethe::audit
