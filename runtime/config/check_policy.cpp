#include "runtime/config/check_policy.hpp"

#include <fmt/format.h>

#include <set>

#include "runtime/policy/policy.hpp"

namespace lethe {

namespace {

using config = schema::Config::Reader;

using schema::ShapeMode;

constexpr policy_key keys[] = {
    {"listen.api", "plain-api", [](config c) { return c.getListen().getApi().size() > 0; }},
    {"trace.mode", "full-traces",
     [](config c) { return c.getTrace().getMode() == schema::TraceMode::ALL; }},
    {"shape.mode", "plain-streaming",
     [](config c) { return c.getShape().getMode() == ShapeMode::OFF; }},
    {"shape.mode", "equal-chunks",
     [](config c) { return c.getShape().getMode() == ShapeMode::SIZE; }},
    {"shape.mode", "paced-answers",
     [](config c) { return c.getShape().getMode() == ShapeMode::SIZE_TICK; }},
    {"gateway.candidates", "two-candidates",
     [](config c) { return c.getGateway().getCandidates() > 1; }},
    {"scaling.most", "load-scaling", [](config c) { return c.getScaling().getMost() > 0; }},
    {"batching.kv", "kv-quantization",
     [](config c) { return c.getBatching().getKv() == schema::KvType::INT8; }},
    {"model.quantize", "weight-quantization",
     [](config c) { return c.getModel().getQuantize().size() > 0; }},
    {"engines", "model-parallelism",
     [](config c) { return c.getEngines().getTensor() * c.getEngines().getPipeline() > 1; }},
    {"engines.links", "clear-links",
     [](config c) { return c.getEngines().getLinks() == schema::Links::CLEAR; }},
    {"engines.arithmetic", "tensor-arithmetic",
     [](config c) { return c.getEngines().getArithmetic() != schema::Arithmetic::EXACT; }},
};

std::string note_of(const policy::optimization& o, schema::Profile profile) {
  if (o.how == policy::had::by_key)
    return fmt::format("{} comes with {}; its name alone changes nothing", o.name, o.key);
  const char* how = o.how == policy::had::always ? "is always on" : "is on";
  if (o.in(profile) != policy::verdict::guarded) return fmt::format("{} {}", o.name, how);
  return fmt::format("{} {}: {}", o.name, how, o.safeguard);
}

void check_names(config c, policy_view& into) {
  std::set<std::string_view> seen;
  auto names = c.getOptimizations();
  for (uint32_t i = 0; i < names.size(); ++i) {
    auto key = fmt::format("optimizations[{}]", i);
    auto allowed = policy::check(c.getProfile(), names[i].cStr());
    if (!allowed)
      into.problems.push_back({key, allowed.why().text});
    else if (!seen.insert((*allowed)->name).second)
      into.problems.push_back({key, fmt::format("{} is there before", (*allowed)->name)});
    else
      into.notes.push_back(note_of(**allowed, c.getProfile()));
  }
}

void check_keys(config c, policy_view& into) {
  for (const auto& k : policy_keys()) {
    if (!k.asks(c)) continue;
    if (auto allowed = policy::check(c.getProfile(), k.optimization); !allowed)
      into.problems.push_back({std::string(k.key), allowed.why().text});
  }
}

}  // namespace

std::span<const policy_key> policy_keys() { return keys; }

policy_view check_policy(config c) {
  policy_view view;
  check_names(c, view);
  check_keys(c, view);
  return view;
}

bool wants(capnp::List<capnp::Text>::Reader optimizations, std::string_view name) {
  for (auto text : optimizations) {
    auto* o = policy::find(text.cStr());
    if (o && o->name == name) return true;
  }
  return false;
}

}  // namespace lethe
