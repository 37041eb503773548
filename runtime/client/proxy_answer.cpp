#include "runtime/client/proxy_answer.hpp"

#include "runtime/api/api_labels.hpp"
#include "runtime/json/json_text.hpp"

namespace lethe {

namespace {

constexpr std::string_view done_mark = "data: [DONE]\n\n";
constexpr const char* event_stream = "text/event-stream";

}  // namespace

api_error to_api_error(const call_end& end) {
  auto as = [&](int status, const char* type, const char* code) {
    return api_error{.status = status,
                     .type = type,
                     .code = code,
                     .message = end.why.text,
                     .retry_after_s = end.retry_after_s};
  };
  switch (end.fault) {
    case call_fault::request:
      return as(413, "invalid_request_error", "request_too_large");
    case call_fault::exposure:
      return as(400, "invalid_request_error", "exposure_spent");
    case call_fault::tokens:
      return as(402, "insufficient_quota", "no_tokens");
    case call_fault::trust:
      return as(403, "permission_error", "not_trusted");
    case call_fault::relay:
      return as(502, "server_error", "relay_unreachable");
    case call_fault::gateway:
      return as(502, "server_error", "gateway_error");
    case call_fault::answer:
      return as(502, "server_error", "answer_broken");
    case call_fault::busy:
    case call_fault::stale_key:
      return as(503, "server_error", "cluster_busy");
    case call_fault::none:
    case call_fault::here:
    case call_fault::cancelled:
      break;
  }
  return as(500, "server_error", "client_error");
}

result<std::pmr::string> without_labels(std::string_view body, std::pmr::memory_resource* memory) {
  auto json = check_json(body);
  if (!json) return fail("the body is no JSON: {}", json.why().text);
  if (!json->is(json_kind::object)) return fail("the body is no JSON object");
  json_text out(memory);
  out.open('{');
  json->each([&](json_slice key, json_slice value) {
    if (is_label(key)) return true;
    out.key(*key.text(memory)).raw(value.raw());
    return true;
  });
  out.close('}');
  return std::pmr::string(out.str(), memory);
}

bool proxy_answer::head(uint32_t status, std::span<const bhttp_field> fields) {
  head_.status = int(status);
  for (const auto& f : fields) {
    if (f.name == "content-type") head_.content_type = f.value;
    if (f.name == "retry-after") head_.fields.emplace_back("Retry-After", f.value);
  }
  streams_ = head_.content_type == event_stream;
  if (!streams_) return true;
  head_.fields.emplace_back("Cache-Control", "no-cache");
  to_.begin(id_, head_);
  return true;
}

bool proxy_answer::content(std::string_view piece) {
  if (streams_) {
    look_for_mark(piece);
    return write(piece);
  }
  too_large_ = piece.size() > whole_bytes_max - held_.size();
  if (!too_large_) held_ += piece;
  return !too_large_;
}

void proxy_answer::whole() {
  if (streams_) return;
  {
    std::lock_guard lock(mutex_);
    if (left_ || stop_.stop_requested()) return;
    handed_on_ = true;
  }
  to_.answer(id_, std::move(head_), held_);
}

/// Before the application can see it and leave.
void proxy_answer::look_for_mark(std::string_view piece) {
  held_ += piece;
  std::lock_guard lock(mutex_);
  handed_on_ = held_.ends_with(done_mark);
  held_.erase(0, held_.size() - std::min(held_.size(), done_mark.size()));
}

bool proxy_answer::handed_on() const {
  std::lock_guard lock(mutex_);
  return handed_on_;
}

/// Waits for room; false: nobody reads on.
bool proxy_answer::write(std::string_view piece) {
  if (piece.empty()) return true;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return undrained_ < window_bytes || left_ || stop_.stop_requested(); });
  if (left_ || stop_.stop_requested()) return false;
  undrained_ += piece.size();
  to_.write(id_, piece);
  return true;
}

void proxy_answer::end(const call_end& how) {
  {
    std::lock_guard lock(mutex_);
    if (left_ || stop_.stop_requested() || (handed_on_ && !streams_)) return;
  }
  how ? to_.end(id_) : fail(how);
}

/// As an answer, or inside the stream that has begun, behind all that it has.
void proxy_answer::fail(const call_end& how) {
  auto why = to_api_error(too_large_ ? fault(call_fault::answer, "the answer is too large") : how);
  if (streams_) {
    write("data: " + to_json(why) + "\n\n");
    return to_.end(id_);
  }
  http_answer head{.status = why.status};
  if (why.retry_after_s > 0)
    head.fields.emplace_back("Retry-After", std::to_string(why.retry_after_s));
  to_.answer(id_, std::move(head), to_json(why));
}

void proxy_answer::drained(size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    undrained_ -= std::min(bytes, undrained_);
  }
  changed_.notify_all();
}

void proxy_answer::leave() {
  {
    std::lock_guard lock(mutex_);
    left_ = true;
    if (handed_on_) return;
  }
  stop();
}

void proxy_answer::stop() {
  stop_.request_stop();
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace lethe
