#pragma once

#include <cstring>
#include <filesystem>
#include <functional>

#include "runtime/model/checkpoint.hpp"
#include "runtime/model/load.hpp"
#include "tests/unit/near_logits.hpp"
#include "tests/unit/parallel_device_run.hpp"

// A model of a file on a device beside the CPU's shard: on an emulated device, and by tests/gpu on
// a real one.

namespace lethe::testing {

inline result<std::unique_ptr<loaded_model>> load_file(const std::filesystem::path& path,
                                                       std::optional<dtype> quantize = {}) {
  auto file = checkpoint::open(path);
  if (!file) return file.why();
  return loaded_model::load(*file, {.quantize = quantize});
}

/// Prompts that are put in by chunks, and how many of the likeliest tokens are to follow each.
struct speech {
  std::vector<prompt> prompts;
  uint32_t tokens = 1;
  kv_type kv = kv_type::f32;
};

/// Prompts and what followed, with the logits of all but the last token.
struct said {
  std::vector<prompt> ids;
  std::vector<logit_rows> logits;
  bool operator==(const said&) const = default;
};

/// As long as what will have been said: what room is needed for.
inline std::vector<prompt> room_for(const speech& s) {
  std::vector<prompt> all = s.prompts;
  for (prompt& p : all) p.resize(p.size() + s.tokens);
  return all;
}

inline uint32_t likeliest(const std::vector<float>& logits) {
  return uint32_t(std::ranges::max_element(logits) - logits.begin());
}

/// Chunks, then token after token; all prompts' in the same steps.
inline said say(const speech& s, uint32_t vocab, const manner& how,
                const std::function<result<void>(planned&)>& execute) {
  said all{s.prompts, std::vector<logit_rows>(s.prompts.size())};
  for (;;) {
    planned step;
    for (size_t p = 0; p < all.ids.size(); ++p) {
      auto from = uint32_t(all.logits[p].size()), end = uint32_t(all.ids[p].size());
      if (end == s.prompts[p].size() + s.tokens) continue;
      add_entry(step, all.ids, p, from, std::min(how.chunk, end - from), how.page_tokens);
    }
    if (step.plan.tokens == 0) return all;
    if (auto done = execute(step); !done) throw std::runtime_error(done.why().text);
    take_rows(step, vocab, all.logits);
    for (size_t p = 0; p < all.ids.size(); ++p)
      if (all.logits[p].size() == all.ids[p].size() &&
          all.ids[p].size() < s.prompts[p].size() + s.tokens)
        all.ids[p].push_back(likeliest(all.logits[p].back()));
  }
}

inline said say_on_cpu(const model_weights& w, const speech& s) {
  auto ranks = grid::start(w, config_for(room_for(s), {.kv = s.kv}));
  if (!ranks) throw std::runtime_error(ranks.why().text);
  return say(s, w.shape.vocab, {}, [&](planned& step) {
    (*ranks)->submit(step.plan, step.data(w.shape.vocab));
    return (*ranks)->wait_oldest();
  });
}

/// A device and its table of kernels.
struct place {
  accelerator& on;
  const cuda_row& row;
};

inline std::unique_ptr<device_shard> started(const place& where, const model_weights& w,
                                             const std::vector<prompt>& room, manner how,
                                             kv_type kv, bool graphs) {
  how.kv = kv;
  auto shard = shard_on(where.on, where.row, w, {shard_config_for(w, room, how), graphs});
  if (!shard) throw std::runtime_error(shard.why().text);
  return *std::move(shard);
}

inline said say_on_device(const place& where, const model_weights& w, const speech& s,
                          const manner& how, bool graphs) {
  auto shard = started(where, w, room_for(s), how, s.kv, graphs);
  return say(s, w.shape.vocab, how,
             [&](planned& step) { return shard->execute(step.plan, step.data(w.shape.vocab)); });
}

/// Where a token or a logit's bits are not those wanted; empty: nowhere.
inline std::string difference(const said& got, const said& want) {
  for (size_t p = 0; p < want.ids.size(); ++p) {
    auto at = [&](size_t row) {
      return ", prompt " + std::to_string(p) + " row " + std::to_string(row);
    };
    for (size_t r = 0; r < want.logits[p].size(); ++r) {
      const auto& row = want.logits[p][r];
      if (r >= got.logits[p].size() ||
          std::memcmp(got.logits[p][r].data(), row.data(), row.size() * sizeof(float)) != 0)
        return "other logits" + at(r);
    }
    if (got.ids[p] != want.ids[p]) return "other tokens" + at(want.ids[p].size());
  }
  return got == want ? "" : "more was said";
}

/// The first row that is farther than tensor_share from the one wanted; empty: none is.
inline std::string too_far(const std::vector<logit_rows>& got, const std::vector<logit_rows>& want,
                           kv_type kv, dtype weights) {
  for (size_t p = 0; p < want.size(); ++p)
    for (size_t r = 0; r < want[p].size(); ++r) {
      const logit_distance d(got[p][r], want[p][r]);
      if (!d.within(tensor_share(kv, weights)))
        return "off by " + std::to_string(d.off) + " of " + std::to_string(d.largest) +
               ", prompt " + std::to_string(p) + " row " + std::to_string(r);
    }
  return {};
}

/// The CPU's tokens and the bits of its logits, by graphs and without; empty: they are.
inline std::string exact_fault(const place& where, const model_weights& w, const speech& s,
                               const manner& how) {
  said want = say_on_cpu(w, s);
  for (bool graphs : {true, false})
    if (auto off = difference(say_on_device(where, w, s, how, graphs), want); !off.empty())
      return off + (graphs ? ", by graphs" : ", without graphs");
  return {};
}

/// By tensor cores: the CPU's words, put in as prompts, give logits near its own; what each prompt
/// is answered alone, put in whole, is what it is answered in chunks among the others.
inline std::string tensor_fault(const place& where, const model_weights& w, const speech& s,
                                const manner& how) {
  said cpu = say_on_cpu(w, s);
  auto shard = started(where, w, cpu.ids, how, s.kv, true);
  auto steps = plan_mixed(cpu.ids, how, s.tokens);
  auto heard = run_on_device(*shard, w.shape.vocab, steps, cpu.ids.size());
  dtype type = w.layers[0].mlp.down.type;
  if (auto off = too_far(heard, cpu.logits, s.kv, type); !off.empty()) return off;
  said together = say_on_device(where, w, s, how, true);
  for (size_t p = 0; p < s.prompts.size(); ++p) {
    said alone = say_on_device(where, w, {{s.prompts[p]}, s.tokens, s.kv}, {}, false);
    if (auto off = difference({{together.ids[p]}, {together.logits[p]}}, alone); !off.empty())
      return off + ", in company, of prompt " + std::to_string(p);
  }
  return {};
}

}  // namespace lethe::testing
