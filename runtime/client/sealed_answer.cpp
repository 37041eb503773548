#include "runtime/client/sealed_answer.hpp"

#include <algorithm>

#include "runtime/gateway/sealed_names.hpp"
#include "runtime/json/json_slice.hpp"

namespace lethe {

namespace {

constexpr size_t problem_bytes_read = 1024, title_bytes_max = 120;

change_word change_of(std::string_view value) {
  if (value == sealed_names::due) return change_word::due;
  return value == sealed_names::none ? change_word::none : change_word::absent;
}

}  // namespace

bool sealed_answer::head(uint32_t status, std::span<const bhttp_field> fields) {
  gateway_refusal refusal{.status = status};
  bool sealed = false;
  for (const auto& f : fields) {
    if (f.name == "content-type") sealed = f.value == sealed_names::response;
    if (f.name == sealed_names::change_field) refusal.change = change_of(f.value);
    if (f.name == sealed_names::refusal_field) refusal.node_refusal = f.value;
    if (f.name == "www-authenticate") refusal.challenge = f.value;
  }
  if (status == 200 && sealed) return true;
  if (status == 200) return bad(fail("gateway: what it answers is no sealed answer"));
  refusal_ = std::move(refusal);
  return true;
}

bool sealed_answer::bad(const result<void>& what) {
  why_ = what.why();
  return false;
}

bool sealed_answer::content(std::string_view piece) {
  if (refusal_) return hear(piece), true;
  plain_.clear();
  content_.clear();
  if (auto ok = opener_.push(as_bytes(piece), plain_); !ok) return bad(ok);
  if (auto ok = reader_.feed(plain_, content_); !ok) return bad(ok);
  if (reader_.has_head() && !std::exchange(began_, true))
    if (!to_.head(reader_.status(), reader_.fields())) return false;
  if (!content_.empty() && !to_.content(content_)) return false;
  if (reader_.done()) tell_whole();
  return true;
}

void sealed_answer::hear(std::string_view problem) {
  problem_ += problem.substr(0, problem_bytes_read - problem_.size());
  auto json = check_json(problem_);
  auto title = json && json->is(json_kind::object) ? json->find("title") : std::nullopt;
  auto text = title ? title->text(std::pmr::get_default_resource()) : std::nullopt;
  if (!text) return;
  refusal_->title = text->substr(0, title_bytes_max);
  std::ranges::replace_if(
      refusal_->title, [](char c) { return c < ' ' || c > '~' || c == '"'; }, '?');
}

void sealed_answer::tell_whole() {
  if (!std::exchange(whole_, true)) to_.whole();
}

result<receipt> sealed_answer::finish() {
  auto proof = opener_.finish();
  if (!proof) return proof;
  if (auto ok = reader_.finish(); !ok) return ok.why();
  tell_whole();
  return proof;
}

}  // namespace lethe
