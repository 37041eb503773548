#include "actors/cli/trace_source.hpp"

#include <fmt/format.h>

#include <chrono>

#include "actors/cli/ask.hpp"
#include "actors/cli/commands.hpp"
#include "runtime/trace/trace_text.hpp"

namespace lethe {

namespace {

constexpr const char* no_records_text =
    "the cluster keeps no records: its file says [trace] mode = \"off\"; write \"allowed\", or "
    "\"all\" with profile \"lab\", and start it again";

uint64_t unix_now() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

result<gathered> gather(const std::string& cluster) {
  auto name = cluster_named(cluster);
  if (!name) return name.why();
  auto ask = pack<schema::ControlAsk>({}, [](schema::ControlAsk::Builder b) { b.initTrace(); });
  uint64_t asked = unix_now();
  auto answer = ask_cluster(*name, ask);
  if (!answer) return answer.why();
  uint64_t unix_ns = asked / 2 + unix_now() / 2;  // it gathered about half way
  result<gathered> all = fail("cluster \"{}\": its answer holds no records", *name);
  auto read = unpack(*answer, [&](schema::ControlAnswer::Reader r) {
    if (r.isRefused()) all = fail("{}", r.getRefused().cStr());
    if (r.isTrace()) all = gathered_from(r.getTrace(), unix_ns);
  });
  if (!read) return read.why();
  return all;
}

result<gathered> load(const trace_source& source) {
  return source.file.empty() ? gather(*source.cluster) : read_recording(source.file);
}

}  // namespace

std::shared_ptr<trace_source> add_trace_source(CLI::App& to) {
  auto source = std::make_shared<trace_source>();
  source->cluster = add_cluster_option(to);
  to.add_option("--from", source->file, "a file of lethe trace save, instead of a running cluster");
  return source;
}

result<timeline> load_timeline(const trace_source& source) {
  auto all = load(source);
  if (!all) return all.why();
  auto t = make_timeline(*std::move(all));
  if (t.off()) return fail("{}", no_records_text);
  return t;
}

int with_timeline(const trace_source& source, const std::function<int(const timeline&)>& use) {
  auto t = load_timeline(source);
  return t ? use(*t) : refuse(t.why().text);
}

int with_request(const trace_source& source, const std::string& id,
                 const std::function<int(const timeline&, const traced_request&)>& use) {
  return with_timeline(source, [&](const timeline& t) {
    auto found = find_request(t, id);
    return found ? use(t, **found) : refuse(found.why().text + "\n" + gaps_text(t));
  });
}

int save_recording(const trace_source& source, const std::string& file) {
  auto all = load(source);
  if (!all) return refuse(all.why().text);
  if (auto written = write_recording(file, *all); !written) return refuse(written.why().text);
  auto t = make_timeline(*std::move(all));
  if (t.off()) return refuse(fmt::format("{}: written, but {}", file, no_records_text));
  fmt::print("{}: {} records of {} processes, {} requests\n", file, t.events.size(),
             t.from.processes.size(), t.requests.size());
  fmt::print(stderr, "{}", gaps_text(t));
  return 0;
}

}  // namespace lethe
