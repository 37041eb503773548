#pragma once

// Runs requests on an engine as a user of it would, and gives what came out.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/batch/engine.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"
#include "tests/places.hpp"

namespace lethe::e2e {

/// Where the shared vectors are; empty: not on this machine, which only CI may not accept.
inline std::filesystem::path vectors() {
  const char* set = std::getenv("LETHE_VECTORS");
  std::filesystem::path path = set ? set : places::vectors;
  if (std::filesystem::exists(path)) return path;
  const char* ci = std::getenv("CI");
  if (ci && std::string(ci) == "true") ADD_FAILURE() << "CI needs the shared vectors";
  return {};
}

struct wanted {
  std::vector<uint32_t> prompt;
  uint32_t max_tokens = 1;
  uint32_t choices = 1;
  sampling how{.temperature = 0};
  bool prompt_logprobs = false;
};

struct answered {
  std::vector<std::vector<uint32_t>> ids;  // by choice
  std::vector<float> logprobs;             // of choice 0
  std::vector<token_logprob> top;
  std::vector<float> prompt_logprobs;
  std::vector<token_logprob> prompt_top;
  std::vector<finish_reason> reasons;
  arena_report wiped;

  bool operator==(const answered& o) const {
    auto same = [](auto& a, auto& b) {
      return a.size() == b.size() &&
             std::equal(a.begin(), a.end(), b.begin(),
                        [](auto& x, auto& y) { return x.id == y.id && x.logprob == y.logprob; });
    };
    return ids == o.ids && logprobs == o.logprobs && prompt_logprobs == o.prompt_logprobs &&
           same(top, o.top) && same(prompt_top, o.prompt_top);
  }
};

inline std::unique_ptr<request> submit(engine& e, const wanted& w, uint32_t vocab) {
  auto made = request::make(size_t{64} << 20);
  EXPECT_TRUE(bool(made));
  auto asked = (*made)->ask({.prompt = w.prompt,
                             .max_tokens = w.max_tokens,
                             .choices = w.choices,
                             .how = w.how,
                             .prompt_logprobs = w.prompt_logprobs},
                            vocab);
  EXPECT_TRUE(bool(asked)) << (asked ? "" : asked.why().text);
  auto sent = e.submit(**made);
  EXPECT_TRUE(bool(sent)) << (sent ? "" : sent.why().text);
  return std::move(*made);
}

inline answered collect(request& r) {
  while (true) {
    uint32_t seen = r.events();
    if (r.gone()) break;
    r.wait(seen);
  }
  answered a;
  for (uint32_t i = 0; i < r.choices(); ++i) {
    const auto& c = r.choice(i);
    a.ids.emplace_back(c.ids.begin(), c.ids.begin() + c.published);
    a.reasons.push_back(c.reason);
  }
  const auto& c = r.choice(0);
  if (r.how().want_logprob) a.logprobs.assign(c.logprobs.begin(), c.logprobs.begin() + c.published);
  a.top.assign(c.top.begin(), c.top.begin() + c.published * r.how().logprobs);
  a.prompt_logprobs.assign(r.prompt_logprobs().begin(), r.prompt_logprobs().end());
  a.prompt_top.assign(r.prompt_top().begin(), r.prompt_top().end());
  a.wiped = r.forget();
  return a;
}

inline std::vector<answered> run_all(engine& e, const std::vector<wanted>& all, uint32_t vocab) {
  std::vector<std::unique_ptr<request>> sent;
  for (const auto& w : all) sent.push_back(submit(e, w, vocab));
  std::vector<answered> out;
  for (auto& r : sent) out.push_back(collect(*r));
  return out;
}

/// A model in memory, by path.
struct opened {
  checkpoint file;
  std::unique_ptr<loaded_model> loaded;
  const model_weights& weights() const { return loaded->weights(); }
  uint32_t vocab() const { return weights().shape.vocab; }
};

inline opened open(const std::filesystem::path& path, load_options options = {}) {
  auto file = checkpoint::open(path);
  if (!file) throw std::runtime_error(file.why().text);
  auto loaded = loaded_model::load(*file, options);
  if (!loaded) throw std::runtime_error(loaded.why().text);
  return {std::move(*file), std::move(*loaded)};
}

inline std::unique_ptr<engine> start(const opened& m, engine_config c) {
  auto e = engine::start(m.weights(), c);
  if (!e) throw std::runtime_error(e.why().text);
  return std::move(*e);
}

/// Tests are small: a pool that one finds room in at once.
inline engine_config small(engine_config c = {}) {
  if (c.threads == 0) c.threads = 1;
  if (c.kv_bytes == 0) c.kv_bytes = size_t{8} << 20;
  return c;
}

}  // namespace lethe::e2e
