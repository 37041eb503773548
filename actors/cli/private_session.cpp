#include "actors/cli/private_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/json/json_text.hpp"

namespace lethe {

call_result<std::unique_ptr<private_client>> open_private(const std::string& file,
                                                          client_options options, bool explains) {
  auto trust = trust_file::read(file);
  if (!trust) return call_end{call_fault::here, trust.why()};
  const auto& accepts = trust->evidence;
  if (std::ranges::find(accepts, no_evidence) != accepts.end())
    fmt::print(
        stderr,
        "lethe: no node is attested: {} accepts evidence \"none\", so what runs there, and on "
        "how many machines, is its operator's word\n",
        file);
  waiting_word word(explains);
  word.begins(fmt::format("the gateway's keys and log, by the relay {}",
                          trust->relays.front().origin.text()));
  return private_client::start(*std::move(trust), std::move(options));
}

call_observer answer_waiting::observer(bool explains) {
  return [this, tell = explains ? explaining() : call_observer()](const check_step& step) {
    if (tell) tell(step);
    if (step.name == "seal")
      word_.begins("the answer: relay, gateway and node have the request, or one of them hangs");
    else
      word_.ends();
  };
}

call_observer explaining() {
  return [](const check_step& step) {
    fmt::print(stderr, "  {:<6} {:<14} {}\n", step.ok ? "ok" : "FAILED", step.name, step.detail);
  };
}

void explain_views(const private_answer& answer) {
  fmt::print(
      stderr,
      "  who saw what\n"
      "    issuer   your account, and when it bought tokens; not this request, nor which token it "
      "took.\n"
      "             A wallet keeps no times: what was bought and spent within the hour can be "
      "matched by "
      "time\n"
      "    relay    your address, how much and when; not what, nor for which node\n"
      "    gateway  {} token{} that nobody can tell from others, the node, how much; not you, "
      "nor what\n"
      "    node     what you asked and what it said, until it wiped {} arenas; not you\n",
      answer.draws, answer.draws == 1 ? "" : "s", answer.proof ? answer.proof->arenas : 0);
}

std::string chat_body(const std::string& model,
                      const std::vector<std::pair<std::string, std::string>>& messages,
                      bool stream) {
  json_text out(std::pmr::get_default_resource());
  out.open('{').key("model").text(model).key("stream").boolean(stream).key("messages").open('[');
  for (const auto& [role, content] : messages)
    out.open('{').key("role").text(role).key("content").text(content).close('}');
  out.close(']').close('}');
  return std::string(out.str());
}

std::string model_of(const cluster_state& state) {
  std::map<std::string, uint64_t> served;
  for (const auto& leaf : state.nodes.leaves) served[leaf.model_class] += leaf.capacity;
  auto most = std::ranges::max_element(served, {}, [](const auto& s) { return s.second; });
  return most == served.end() ? "" : most->first;
}

}  // namespace lethe
