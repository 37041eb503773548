#include "runtime/gateway/outer_answer.hpp"

#include <fmt/format.h>

#include "runtime/crypto/ohttp_names.hpp"
#include "runtime/gateway/sealed_names.hpp"

namespace lethe {

std::string_view outer_answer::media_type() const {
  return form_ == ohttp_form::whole ? ohttp_names::response : ohttp_names::chunked_response;
}

result<void> outer_answer::head(uint32_t status, std::span<const bhttp_field> fields) {
  if (auto ok = writer_.head(status, fields, plain_); !ok) return ok.why();
  begun_ = true;
  return {};
}

result<void> outer_answer::add(std::string_view piece) {
  if (form_ == ohttp_form::whole && plain_.size() + piece.size() + frame_bytes > whole_bytes_max)
    return fail("outer answer: above {} bytes; ask for it in chunks", whole_bytes_max);
  writer_.content(piece, plain_);
  return {};
}

result<void> outer_answer::content(std::string_view piece, std::vector<std::byte>& out) {
  if (auto ok = add(piece); !ok) return ok;
  return leave(false, out);
}

result<void> outer_answer::end(std::string_view last_piece, std::vector<std::byte>& out) {
  if (auto ok = add(last_piece); !ok) return ok;
  writer_.end(plain_);
  return leave(true, out);
}

result<void> outer_answer::leave(bool final, std::vector<std::byte>& out) {
  if (form_ == ohttp_form::whole && !final) return {};
  size_t said = 0;
  auto rest = [&] { return as_bytes(std::string_view(plain_).substr(said)); };
  while (form_ == ohttp_form::chunked && rest().size() > limits::chunk_plain_bytes_max) {
    if (auto ok = sealer_.seal(rest().first(limits::chunk_plain_bytes_max), false, out); !ok)
      return ok.why();
    said += limits::chunk_plain_bytes_max;
  }
  if (final || !rest().empty())
    if (auto ok = sealer_.seal(rest(), final, out); !ok) return ok.why();
  wipe(plain_.data(), plain_.size());
  plain_.clear();
  return {};
}

result<void> outer_answer::whole(uint32_t status, std::string_view content_type,
                                 std::string_view content_bytes, std::vector<std::byte>& out) {
  bhttp_field type{"content-type", content_type};
  if (auto ok = head(status, {&type, 1}); !ok) return ok.why();
  return end(content_bytes, out);
}

result<void> outer_answer::problem(const inner_problem& why, std::vector<std::byte>& out) {
  auto text = fmt::format("{{\"title\":\"{}\",\"status\":{}}}", why.title, why.status);
  std::string retry = fmt::format("{}", why.retry_after_s);
  std::vector<bhttp_field> fields = {{"content-type", sealed_names::problem}};
  if (why.change != change_word::absent)
    fields.push_back({sealed_names::change_field,
                      why.change == change_word::due ? sealed_names::due : sealed_names::none});
  if (!why.challenge.empty()) fields.push_back({"www-authenticate", why.challenge});
  if (!why.refusal.empty()) fields.push_back({sealed_names::refusal_field, why.refusal});
  if (why.retry_after_s > 0) fields.push_back({"retry-after", retry});
  if (auto ok = head(why.status, fields); !ok) return ok.why();
  return end(text, out);
}

}  // namespace lethe
