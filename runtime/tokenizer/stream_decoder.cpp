#include "runtime/tokenizer/stream_decoder.hpp"

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/tokenizer_parts.hpp"

namespace lethe {

struct stream_decoder::state {
  state(const tokenizer_parts& p, bool skip, std::pmr::memory_resource* memory)
      : parts(p), skip_special(skip), chain(p.decoders, memory), bytes(memory) {}

  // What is whole by now goes out, what is cut stays.
  void emit(bool more_follows, std::pmr::string& out) {
    bytes.erase(0, utf8::append_mended(out, bytes, more_follows));
  }

  const tokenizer_parts& parts;
  bool skip_special;
  decoders::run chain;
  std::pmr::string bytes;
};

void stream_decoder::release::operator()(state* s) const {
  s->~state();
  memory->deallocate(s, sizeof(state), alignof(state));
}

stream_decoder::stream_decoder(const tokenizer& t, bool skip_special,
                               std::pmr::memory_resource* memory)
    : state_(nullptr, release{memory}) {
  void* at = memory->allocate(sizeof(state), alignof(state));
  state_.reset(new (at) state(*t.parts_, skip_special, memory));
}

void stream_decoder::push(uint32_t id, std::pmr::string& out) {
  auto& s = *state_;
  if (!s.parts.tokens.has(id)) return;
  if (s.skip_special && s.parts.tokens.is_control(id)) return;
  s.chain.push(s.parts.tokens.text(id), s.parts.is_literal(id), s.bytes);
  s.emit(true, out);
}

void stream_decoder::flush(std::pmr::string& out) {
  state_->chain.finish(state_->bytes);
  state_->emit(false, out);
}

}  // namespace lethe
