#include "actors/cli/ask.hpp"

#include "actors/cli/commands.hpp"
#include "runtime/config/cluster_config.hpp"

namespace lethe {

const char* word_of(schema::Phase p) {
  constexpr const char* words[] = {"waiting",  "starting", "loading", "ready",
                                   "draining", "gone",     "failed",  "parked"};
  return size_t(p) < std::size(words) ? words[size_t(p)] : "?";
}

result<std::string> cluster_named(const std::string& word) {
  if (word.ends_with(".toml")) {
    auto config = cluster_config::read(word);
    if (!config.problems().empty()) return error{config.problems().front()};
    return std::string(config.get().getName().cStr());
  }
  if (!word.empty()) return word;
  auto names = running_clusters();
  if (names.size() == 1) return names.front();
  if (names.empty()) return fail("no cluster runs on this host; lethe up FILE starts one");
  return fail("several clusters run on this host: {}; say which: --cluster NAME",
              fmt::join(names, ", "));
}

int ask_and(const std::string& word, const std::function<void(schema::ControlAsk::Builder)>& fill,
            const std::function<int(schema::ControlAnswer::Reader)>& use) {
  auto name = cluster_named(word);
  if (!name) return refuse(name.why().text);
  auto answer = ask_cluster(*name, pack<schema::ControlAsk>({}, fill));
  if (!answer) return refuse(answer.why().text);
  int exit_code = 1;
  auto read = unpack(*answer, [&](schema::ControlAnswer::Reader r) {
    exit_code = r.isRefused() ? refuse(r.getRefused().cStr()) : use(r);
  });
  return read ? exit_code : refuse(read.why().text);
}

std::shared_ptr<std::string> add_cluster_option(CLI::App& to) {
  auto word = std::make_shared<std::string>();
  to.add_option("--cluster", *word, "its name or its file; needed where several run on this host");
  return word;
}

}  // namespace lethe
