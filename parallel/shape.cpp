#include "parallel/shape.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lethe {
namespace {

/// Long waves are stretched, short ones kept, those between blended.
double llama3_frequency(const rope_shape& rope, double f) {
  double context = rope.original_context;
  double wavelength = 2 * std::numbers::pi / f;
  if (wavelength > context / rope.low_freq_factor) return f / rope.factor;
  if (wavelength < context / rope.high_freq_factor) return f;
  double smooth = (context / wavelength - rope.low_freq_factor) /
                  (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * f / rope.factor + smooth * f;
}

/// The pair (not whole) that turns `turns` times over the original context.
double yarn_pair(const rope_shape& rope, double turns) {
  return rope.rotary * std::log(rope.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

/// Pairs below `begin` keep their frequency, those above `end` are stretched.
struct yarn_ramp {
  double begin, end;
  double at(uint32_t pair) const { return std::clamp((pair - begin) / (end - begin), 0.0, 1.0); }
};

yarn_ramp ramp_of(const rope_shape& rope) {
  double begin = yarn_pair(rope, rope.beta_fast), end = yarn_pair(rope, rope.beta_slow);
  if (rope.truncate) begin = std::floor(begin), end = std::ceil(end);
  begin = std::max(begin, 0.0);
  end = std::min(end, double(rope.rotary) - 1);
  if (begin == end) end += 0.001;
  return {begin, end};
}

double scaled(const rope_shape& rope, const yarn_ramp& ramp, uint32_t pair, double f) {
  switch (rope.scaling) {
    case rope_scaling::none:
      return f;
    case rope_scaling::linear:
      return f / rope.factor;
    case rope_scaling::llama3:
      return llama3_frequency(rope, f);
    case rope_scaling::yarn: {
      double stretched = ramp.at(pair);
      return f / rope.factor * stretched + f * (1 - stretched);
    }
  }
  return f;
}

}  // namespace

std::vector<double> rope_frequencies(const rope_shape& rope) {
  yarn_ramp ramp{0, 1};
  if (rope.scaling == rope_scaling::yarn) ramp = ramp_of(rope);
  std::vector<double> frequencies(rope.rotary / 2);
  for (uint32_t i = 0; i < frequencies.size(); ++i) {
    double f = std::pow(rope.theta, -2.0 * i / rope.rotary);
    if (i < rope.factors.size()) f /= double(rope.factors[i]);
    frequencies[i] = scaled(rope, ramp, i, f);
  }
  return frequencies;
}

double rope_magnitude(const rope_shape& rope) {
  if (rope.scaling != rope_scaling::yarn) return 1;
  if (rope.attention_factor != 0) return rope.attention_factor;
  return rope.factor <= 1 ? 1 : 0.1 * std::log(rope.factor) + 1;
}

}  // namespace lethe
