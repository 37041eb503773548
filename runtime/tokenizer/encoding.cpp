#include "runtime/tokenizer/encoding.hpp"

namespace lethe {
namespace {

using sections = std::pmr::vector<added_tokens::section>;

struct task {
  const tokenizer_parts& parts;
  bool parse_special;
  match_session& session;
  std::pmr::vector<uint32_t>& out;
  std::pmr::memory_resource* memory() const { return out.get_allocator().resource(); }
};

// Text that holds no token by name: cut into words, each given to the model.
template <class Model>
result<void> encode_words(const task& t, const Model& model, typename Model::scratch& scratch,
                          std::string_view text, bool first) {
  pre_tokenizers::pieces pieces(t.memory());
  pieces.text = text;
  pieces.cuts.push_back({0, uint32_t(text.size()), first});
  auto cut = pre_tokenizers::apply(t.parts.pre_tokenizers, pieces, t.session);
  if (!cut) return cut;
  for (auto piece : pieces.cuts) model.encode(pieces.at(piece), scratch, t.out);
  return {};
}

template <class Model>
result<void> encode_raw(const task& t, const Model& model, typename Model::scratch& scratch,
                        std::string_view text, bool first) {
  std::pmr::string normalized(text, t.memory());
  auto done = normalizers::apply(t.parts.normalizers, normalized, t.session);
  if (!done) return done;
  std::string_view whole = normalized;
  sections cuts(t.memory());
  t.parts.normalized_tokens.cut(whole, t.parse_special, cuts);
  for (auto [begin, end, id] : cuts) {
    if (id != added_tokens::no_token) {
      t.out.push_back(id);
      continue;
    }
    done = encode_words(t, model, scratch, whole.substr(begin, end - begin), first && begin == 0);
    if (!done) return done;
  }
  return {};
}

}  // namespace

result<void> encode_text(const tokenizer_parts& parts, std::string_view text, bool parse_special,
                         std::pmr::vector<uint32_t>& out) {
  auto* memory = out.get_allocator().resource();
  match_session session(text.size(), memory);
  task t{parts, parse_special, session, out};
  sections cuts(memory);
  parts.raw_tokens.cut(text, parse_special, cuts);
  return std::visit(
      [&](const auto& model) -> result<void> {
        typename std::remove_cvref_t<decltype(model)>::scratch scratch(memory);
        for (auto [begin, end, id] : cuts) {
          if (id != added_tokens::no_token) {
            out.push_back(id);
            continue;
          }
          auto done = encode_raw(t, model, scratch, text.substr(begin, end - begin), begin == 0);
          if (!done) return done;
        }
        return {};
      },
      parts.model);
}

}  // namespace lethe
