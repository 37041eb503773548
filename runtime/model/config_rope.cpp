#include <algorithm>
#include <cmath>

#include "runtime/base/limits.hpp"
#include "runtime/model/byte_reader.hpp"
#include "runtime/model/config_json.hpp"

namespace lethe {

namespace {

constexpr std::string_view known_keys[] = {"type",
                                           "rope_type",
                                           "factor",
                                           "original_max_position_embeddings",
                                           "low_freq_factor",
                                           "high_freq_factor",
                                           "attention_factor",
                                           "beta_fast",
                                           "beta_slow",
                                           "truncate",
                                           "mscale",
                                           "mscale_all_dim",
                                           "rope_theta",
                                           "partial_rotary_factor",
                                           "finetuned"};

void refuse_unknown_keys(const config_fields& scaling) {
  for (auto member : scaling.members())
    if (std::find(std::begin(known_keys), std::end(known_keys), member.key) == std::end(known_keys))
      note(scaling.problems(), "{}{} is not supported", scaling.where(), printable(member.key));
}

/// Both spellings are in use; "default" means none. A nested object per kind of layer, which some
/// families have, has neither key.
rope_scaling type_of(const config_fields& scaling) {
  const char* key = scaling.has("rope_type") ? "rope_type" : "type";
  auto type = scaling.text(key);
  if (!type) {
    if (scaling.has("factor") && !scaling.has(key))
      note(scaling.problems(), "{}rope_type is missing; supported: llama3, linear, yarn, default",
           scaling.where());
    return rope_scaling::none;
  }
  if (*type == "default") return rope_scaling::none;
  if (*type == "linear") return rope_scaling::linear;
  if (*type == "llama3") return rope_scaling::llama3;
  if (*type == "yarn") return rope_scaling::yarn;
  note(scaling.problems(), "{}{} \"{}\" is not supported; supported: llama3, linear, yarn",
       scaling.where(), key, printable(*type));
  return rope_scaling::none;
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

void read_yarn(const config_fields& scaling, model_shape& shape) {
  rope_shape& r = shape.rope;
  r.original_context = scaling.u32("original_max_position_embeddings").value_or(shape.context_max);
  // Without a factor, both contexts give it.
  if (!scaling.has("factor") && r.original_context)
    r.factor = double(shape.context_max) / r.original_context;
  r.beta_fast = scaling.number("beta_fast").value_or(32);
  r.beta_slow = scaling.number("beta_slow").value_or(1);
  r.truncate = scaling.boolean("truncate").value_or(true);
  auto attention = scaling.number("attention_factor");
  if (attention && *attention <= 0)
    note(scaling.problems(), "{}attention_factor is {}; it must be above 0", scaling.where(),
         *attention);
  r.attention_factor = attention.value_or(0);
  auto mscale = scaling.number("mscale"), all = scaling.number("mscale_all_dim");
  if (!attention && mscale && all && *mscale != 0 && *all != 0)
    r.attention_factor = yarn_mscale(r.factor, *mscale) / yarn_mscale(r.factor, *all);
  double stretched = std::min(r.original_context * r.factor, double(limits::context_max));
  if (std::isfinite(stretched) && stretched > shape.context_max)
    shape.context_max = uint32_t(stretched);
}

void read_llama3(const config_fields& scaling, rope_shape& r) {
  for (const char* key : {"low_freq_factor", "high_freq_factor"})
    if (!scaling.has(key)) note(scaling.problems(), "{}{} is missing", scaling.where(), key);
  r.low_freq_factor = scaling.number("low_freq_factor").value_or(1);
  r.high_freq_factor = scaling.number("high_freq_factor").value_or(4);
  r.original_context = scaling.required("original_max_position_embeddings");
}

void read_scaling(const config_fields& scaling, model_shape& shape) {
  refuse_unknown_keys(scaling);
  rope_shape& r = shape.rope;
  r.scaling = type_of(scaling);
  if (r.scaling == rope_scaling::none) return;
  if (r.scaling != rope_scaling::yarn && !scaling.has("factor"))
    note(scaling.problems(), "{}factor is missing", scaling.where());
  r.factor = scaling.number("factor").value_or(1);
  if (r.scaling == rope_scaling::llama3) read_llama3(scaling, r);
  if (r.scaling == rope_scaling::yarn) read_yarn(scaling, shape);
}

}  // namespace

void read_rope(const config_fields& config, model_shape& shape) {
  rope_shape& r = shape.rope;
  auto scaling = config.object("rope_scaling");
  auto parameters = config.object("rope_parameters");  // transformers 5
  auto number = [&config, &parameters](const char* key, double otherwise) {
    if (parameters && parameters->has(key)) return parameters->number(key).value_or(otherwise);
    return config.number(key).value_or(otherwise);
  };
  r.theta = number("rope_theta", 10000);
  double part = number("partial_rotary_factor", 1);
  if (!(part > 0 && part <= 1)) {
    note(config.problems(), "{}partial_rotary_factor is {}; allowed: above 0, to 1", config.where(),
         part);
    part = 1;
  }
  r.rotary = uint32_t(shape.head_dim * part);
  if (parameters && (!scaling || parameters->has("rope_type")))
    read_scaling(*parameters, shape);
  else if (scaling)
    read_scaling(*scaling, shape);
}

}  // namespace lethe
