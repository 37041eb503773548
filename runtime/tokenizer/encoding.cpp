#include "runtime/tokenizer/encoding.hpp"

namespace lethe {
namespace {

using sections = std::pmr::vector<added_tokens::section>;

/// What becomes of words.
template <class Model>
struct to_ids final : pre_tokenizers::taker {
  to_ids(const Model& m, std::pmr::vector<uint32_t>& to)
      : model(m), scratch(to.get_allocator().resource()), out(to) {}
  void take(std::span<const pre_tokenizers::piece> words) override {
    for (const auto& word : words) model.encode(word.text, scratch, out);
  }

  const Model& model;
  typename Model::scratch scratch;
  std::pmr::vector<uint32_t>& out;
};

struct task {
  const tokenizer_parts& parts;
  bool parse_special;
  match_session& session;
  pre_tokenizers::cutter& words;
  std::pmr::vector<uint32_t>& out;
};

result<void> encode_raw(const task& t, std::string_view text, bool first) {
  auto* memory = t.out.get_allocator().resource();
  std::pmr::string normalized(text, memory);
  auto done = normalizers::apply(t.parts.normalizers, normalized, t.session);
  if (!done) return done;
  std::string_view whole = normalized;
  sections cuts(memory);
  t.parts.normalized_tokens.cut(whole, t.parse_special, cuts);
  for (auto [begin, end, id] : cuts) {
    if (id != added_tokens::no_token) {
      t.out.push_back(id);
      continue;
    }
    done = t.words.cut(whole.substr(begin, end - begin), first && begin == 0);
    if (!done) return done;
  }
  return {};
}

}  // namespace

result<void> encode_text(const tokenizer_parts& parts, std::string_view text, bool parse_special,
                         std::pmr::vector<uint32_t>& out) {
  auto* memory = out.get_allocator().resource();
  match_session session(text.size(), memory);
  sections cuts(memory);
  parts.raw_tokens.cut(text, parse_special, cuts);
  return std::visit(
      [&](const auto& model) -> result<void> {
        to_ids ids(model, out);
        pre_tokenizers::cutter words(parts.pre_tokenizers, session, ids, text.size(), memory);
        task t{parts, parse_special, session, words, out};
        for (auto [begin, end, id] : cuts) {
          if (id != added_tokens::no_token) {
            out.push_back(id);
            continue;
          }
          auto done = encode_raw(t, text.substr(begin, end - begin), begin == 0);
          if (!done) return done;
        }
        return {};
      },
      parts.model);
}

}  // namespace lethe
