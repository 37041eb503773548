#include "runtime/base/limits.hpp"
#include "runtime/model/config_fields.hpp"
#include "runtime/model/generation_defaults.hpp"

namespace lethe {

namespace {

void keep_within(std::optional<float>& value, const char* name, double least, double most,
                 std::string_view where, problem_list& problems) {
  if (!value || (*value >= least && *value <= most)) return;
  note(problems, "{}: {} is {}; allowed: {} to {}", where, name, *value, least, most);
  value.reset();
}

}  // namespace

void check_defaults(generation_defaults& d, std::string_view where, problem_list& problems) {
  keep_within(d.temperature, "temperature", 0, 100, where, problems);
  keep_within(d.top_p, "top_p", 0, 1, where, problems);
  keep_within(d.min_p, "min_p", 0, 1, where, problems);
  keep_within(d.typical_p, "typical_p", 0, 1, where, problems);
  keep_within(d.repetition_penalty, "repetition_penalty", 0.01, 100, where, problems);
}

generation_defaults read_generation_config(std::string_view json, std::string_view where,
                                           problem_list& problems) {
  simdjson::dom::parser parser;
  auto fields = parse_config(parser, json, where, problems);
  generation_defaults made;
  if (!fields) return made;
  made.eos_ids = fields->ids("eos_token_id");
  made.bos_id = fields->id("bos_token_id");
  made.pad_id = fields->id("pad_token_id");
  made.temperature = fields->number("temperature");
  made.top_k = fields->u32("top_k");
  made.top_p = fields->number("top_p");
  made.min_p = fields->number("min_p");
  made.typical_p = fields->number("typical_p");
  made.repetition_penalty = fields->number("repetition_penalty");
  check_defaults(made, where, problems);
  if (!fields->boolean("do_sample").value_or(true)) made.temperature = 0;
  return made;
}

}  // namespace lethe
