#include "runtime/tokenizer/tokenizer.hpp"

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/encoding.hpp"
#include "runtime/tokenizer/stream_decoder.hpp"
#include "runtime/tokenizer/tokenizer_parts.hpp"

namespace lethe {
namespace {

constexpr size_t text_bytes_max = size_t{256} << 20;

}  // namespace

tokenizer::tokenizer(std::unique_ptr<const tokenizer_parts> parts) noexcept
    : parts_(std::move(parts)) {}
tokenizer::tokenizer(tokenizer&&) noexcept = default;
tokenizer& tokenizer::operator=(tokenizer&&) noexcept = default;
tokenizer::~tokenizer() = default;

result<std::pmr::vector<uint32_t>> tokenizer::encode(std::string_view text, encode_options options,
                                                     std::pmr::memory_resource* memory) const {
  if (text.size() > text_bytes_max)
    return fail("tokenizer: a text of {} bytes; at most {} are encoded", text.size(),
                text_bytes_max);
  std::pmr::string mended(memory);
  size_t bad = utf8::first_invalid(text);
  if (bad != text.npos) {
    if (!options.mend_utf8)
      return fail("tokenizer: the text is not UTF-8 at byte {}; send it as UTF-8", bad);
    utf8::append_mended(mended, text, false);
    text = mended;
  }
  std::pmr::vector<uint32_t> ids(memory);
  ids.reserve(text.size() / 3 + 8);
  if (options.add_special) ids.insert(ids.end(), parts_->before.begin(), parts_->before.end());
  auto done = encode_text(*parts_, text, options.parse_special, ids);
  if (!done) return done.why();
  if (options.add_special) ids.insert(ids.end(), parts_->after.begin(), parts_->after.end());
  return ids;
}

std::pmr::string tokenizer::decode(std::span<const uint32_t> ids, bool skip_special,
                                   std::pmr::memory_resource* memory) const {
  std::pmr::string out(memory);
  stream_decoder decoder(*this, skip_special, memory);
  for (uint32_t id : ids) decoder.push(id, out);
  decoder.flush(out);
  return out;
}

std::string_view tokenizer::token_bytes(uint32_t id) const noexcept {
  if (id >= parts_->middle_ends.size()) return {};
  uint32_t begin = id ? parts_->middle_ends[id - 1] : 0;
  return std::string_view(parts_->middle_bytes).substr(begin, parts_->middle_ends[id] - begin);
}

std::string_view tokenizer::token_text(uint32_t id) const noexcept {
  return parts_->tokens.text(id);
}
std::optional<uint32_t> tokenizer::id_of(std::string_view token_text) const noexcept {
  return parts_->tokens.id_of(token_text);
}
bool tokenizer::is_special(uint32_t id) const noexcept { return parts_->tokens.is_control(id); }
uint32_t tokenizer::vocab_size() const noexcept { return parts_->tokens.size(); }

std::optional<uint32_t> tokenizer::bos() const noexcept { return parts_->bos; }
std::optional<uint32_t> tokenizer::eos() const noexcept { return parts_->eos; }
std::optional<uint32_t> tokenizer::eot() const noexcept { return parts_->eot; }
std::optional<uint32_t> tokenizer::unk() const noexcept { return parts_->unk; }
std::optional<uint32_t> tokenizer::pad() const noexcept { return parts_->pad; }

bool tokenizer::adds_bos() const noexcept {
  return parts_->bos && !parts_->before.empty() && parts_->before.front() == *parts_->bos;
}
bool tokenizer::adds_eos() const noexcept {
  return parts_->eos && !parts_->after.empty() && parts_->after.back() == *parts_->eos;
}

std::string_view tokenizer::chat_template(std::string_view name) const noexcept {
  for (auto& [known, source] : parts_->templates)
    if (known == name) return source;
  return {};
}

}  // namespace lethe
