#include "runtime/tokenizer/tokenizer_parts.hpp"

namespace lethe {

void tokenizer_parts::mark_literal(uint32_t id) {
  if (id >= literal.size()) literal.resize(id + 1);
  literal[id] = true;
}

void tokenizer_parts::spell_middles() {
  auto* memory = std::pmr::new_delete_resource();
  std::pmr::string text(memory);
  middle_ends.reserve(tokens.size());
  for (uint32_t id = 0; id < tokens.size(); id++) {
    text.clear();
    decoders::run chain(decoders, memory, true);
    if (tokens.has(id)) chain.push(tokens.text(id), is_literal(id), text);
    chain.finish(text);
    middle_bytes += text;
    middle_ends.push_back(uint32_t(middle_bytes.size()));
  }
}

}  // namespace lethe
