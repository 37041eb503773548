#include "actors/audit/from_outside.hpp"

#include <fmt/format.h>

#include "actors/audit/embedded_cluster.hpp"
#include "runtime/client/private_client.hpp"

namespace lethe::audit {

namespace {

/// A client's first look with a wallet and a memory of its own.
call_result<std::shared_ptr<const cluster_state>> look(trust_file trust) {
  auto folder = temporary_folder::make("lethe-audit");
  if (!folder) return call_end{call_fault::here, folder.why()};
  trust.wallet = folder->path() / "wallet";
  auto client = private_client::start(std::move(trust), {.on_a_timer = false});
  if (!client) return client.end;
  return (*client)->state();
}

note_key another_key(const note_key& like) {
  return *note_key::make(like.name(), like.algorithm(), signing_key::make().public_key());
}

/// A look that has to be refused.
control refused(const std::string& without, const trust_file& trust) {
  auto seen = look(trust);
  return {.without = without, .measured = seen ? "believed" : seen.end.why.text, .found = !seen};
}

std::vector<control> lies(const trust_file& trust) {
  std::vector<control> all;
  auto other = trust;
  other.log.log = another_key(trust.log.log);
  all.push_back(refused("the log's own signature (another key is trusted)", other));
  other = trust;
  auto witness =
      note_key::make("nobody", note_algorithm::cosignature, signing_key::make().public_key());
  other.log.witnesses.push_back(*witness);
  other.log.quorum = uint32_t(other.log.witnesses.size());
  all.push_back(refused("one witness's cosignature", other));
  other = trust;
  other.evidence = {"attested"};
  all.push_back(refused("evidence of the kind that is asked for", other));
  other = trust;
  other.policy.nodes_min = 10'000;
  all.push_back(refused("as many nodes as are asked for", other));
  other = trust;
  other.origin += "-other";
  all.push_back(refused("the name that tokens are for", other));
  return all;
}

}  // namespace

result<std::vector<finding>> measure_from_outside(
    const trust_file& trust, const std::function<void(const std::string&)>& progress) {
  progress("reading the log and all that it vouches for");
  auto state = look(trust);
  finding f{.promise = "V",
            .attacks = "A10",
            .what = "log, keys, policy and roster, as every client sees them",
            .bound = "each step checked"};
  if (state) {
    std::string steps;
    bool all = true;
    for (const auto& s : (*state)->steps) {
      steps += fmt::format("{}{}", steps.empty() ? "" : ", ", s.name);
      f.note += fmt::format("{}: {}. ", s.name, s.detail);
      all = all && s.ok;
    }
    f.said = all ? verdict::held : verdict::broken;
    f.measured = fmt::format("{} checks: {}", (*state)->steps.size(), steps);
  } else if (state.end.fault == call_fault::relay || state.end.fault == call_fault::gateway) {
    return state.end.why;
  } else {
    f.said = verdict::broken;
    f.measured = state.end.why.text;
  }
  progress("looking again with what should be refused");
  f.controls = lies(trust);
  return std::vector<finding>{f};
}

}  // namespace lethe::audit
