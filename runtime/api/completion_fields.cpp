#include "runtime/api/read_fields.hpp"
#include "runtime/api/read_values.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

constexpr size_t prompts_max = 128;

api_refusal wrong_prompt() {
  return wrong_param("prompt", "prompt must be a text, a list of token ids, or a list of either");
}

api_refusal ids_prompt(api_ask& a, json_slice list) {
  api_prompt p{std::pmr::string(a.memory), std::pmr::vector<uint32_t>(a.memory), true};
  bool good = list.each([&p](json_slice item) {
    auto id = item.whole();
    if (!id || *id < 0 || *id > int64_t{UINT32_MAX}) return false;
    p.ids.push_back(uint32_t(*id));
    return true;
  });
  if (!good || p.ids.empty()) return wrong_prompt();
  a.prompts.push_back(std::move(p));
  return {};
}

api_refusal one_prompt(api_ask& a, json_slice v) {
  if (a.prompts.size() == prompts_max)
    return wrong_param("prompt", "prompt has more than {} prompts", prompts_max);
  if (v.is(json_kind::list)) return ids_prompt(a, v);
  auto text = v.text(a.memory);
  if (!text) return wrong_prompt();
  a.prompts.push_back({*std::move(text), std::pmr::vector<uint32_t>(a.memory), false});
  return {};
}

api_refusal prompt(api_ask& a, json_slice v) {
  if (!v.is(json_kind::list)) return one_prompt(a, v);
  bool of_numbers = false, empty = true;
  v.each([&](json_slice first) {
    empty = false;
    of_numbers = first.is(json_kind::number);
    return false;
  });
  if (empty) return wrong_prompt();
  if (of_numbers) return ids_prompt(a, v);
  api_refusal refused;
  v.each([&](json_slice item) { return !(refused = one_prompt(a, item)); });
  return refused;
}

api_refusal logprobs(api_ask& a, json_slice v) {
  if (v.is(json_kind::null)) return {};
  a.want_logprobs = true;
  return read_whole("logprobs", v, 0, limits::logprobs_max, a.logprobs);
}

constexpr api_field fields[] = {
    {"prompt", prompt},
    {"logprobs", logprobs},
    {"echo", [](api_ask& a, json_slice v) { return read_flag("echo", v, a.echo); }},
    // Every choice is returned, so the best of them are all of them.
    {"best_of",
     [](api_ask&, json_slice v) {
       uint32_t ignored = 1;
       return read_whole("best_of", v, 1, 1, ignored);
     }},
};

}  // namespace

std::span<const api_field> completion_fields() { return fields; }

}  // namespace lethe
