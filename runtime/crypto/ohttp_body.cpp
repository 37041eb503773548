#include "runtime/crypto/ohttp_body.hpp"

namespace lethe {

result<void> ohttp_body_sealer::seal(bytes_view plain, bool final, std::vector<std::byte>& out) {
  const size_t at = out.size();
  auto sealed = seal_piece(plain, final, out);
  if (sealed) return sealed;
  chunks_.close();
  out.resize(at);
  return sealed;
}

result<void> ohttp_body_sealer::seal_piece(bytes_view plain, bool final,
                                           std::vector<std::byte>& out) {
  if (ended()) return fail("ohttp message: it ended, or was given up, before this");
  const size_t bytes = front_.size() + plain.size() + aead_tag_bytes;
  if (form_ == ohttp_form::whole) {
    if (!final) return fail("ohttp message: one of known length has one piece, the final one");
    if (bytes > limits::ohttp_whole_bytes_max)
      return fail("ohttp message: {} bytes; {} are the most, unless it is chunked", bytes,
                  limits::ohttp_whole_bytes_max);
    out.reserve(out.size() + bytes);
  }
  out.insert(out.end(), front_.begin(), front_.end());
  front_.clear();
  return form_ == ohttp_form::whole ? chunks_.seal_whole(plain, out)
                                    : chunks_.seal(plain, final, out);
}

error ohttp_body_opener::refused(ohttp_refusal kind, error why) {
  refusal_ = kind;
  chunks_.close();
  return why;
}

result<void> ohttp_body_opener::push(bytes_view content, std::pmr::string& out) {
  if (form_ == ohttp_form::whole) {
    held_.insert(held_.end(), content.begin(), content.end());
    return {};
  }
  while (!content.empty()) {
    auto chunk = frames_.next(content);
    if (!chunk) return refused(ohttp_refusal::format, chunk.why());
    if (chunk->empty()) break;
    if (auto opened = open(*chunk, false, out); !opened) return opened;
  }
  return {};
}

result<void> ohttp_body_opener::finish(std::pmr::string& out) {
  if (form_ == ohttp_form::whole) {
    if (held_.size() < aead_tag_bytes)
      return refused(ohttp_refusal::format,
                     fail("ohttp message: {} sealed bytes are too few", held_.size()));
    return open(held_, true, out);
  }
  auto last = frames_.finish();
  if (!last) return refused(ohttp_refusal::format, last.why());
  return open(*last, true, out);
}

result<void> ohttp_body_opener::open(bytes_view sealed, bool final, std::pmr::string& out) {
  const size_t bytes = sealed.size() - aead_tag_bytes;
  if (!make_room(out, out.size() + bytes))
    return refused(ohttp_refusal::too_large,
                   fail("ohttp message: no room for {} bytes in its memory", bytes));
  auto opened = form_ == ohttp_form::whole ? chunks_.open_whole(sealed, out)
                                           : chunks_.open(sealed, final, out);
  if (!opened) return refused(ohttp_refusal::sealed, opened.why());
  opened_ = true;
  return {};
}

void cut_back(std::pmr::string& out, size_t bytes) noexcept {
  wipe(out.data() + bytes, out.size() - bytes);
  out.resize(bytes);
}

}  // namespace lethe
