#include "runtime/serve/sealed_call.hpp"

#include <array>

namespace lethe {

namespace {

constexpr size_t piece_bytes_max =
    limits::chunk_plain_bytes_max - answer_sealer::first_chunk_bytes_taken;

/// What the server says of a path that it doesn't have.
const api_error no_such_path{
    .status = 404,
    .code = "not_found",
    .message = "there are POST /v1/chat/completions and POST /v1/completions"};

}  // namespace

result<std::unique_ptr<sealed_call>> sealed_call::open(std::shared_ptr<const sealed_service> by,
                                                       bytes_view sealed, const payment& paid,
                                                       std::shared_ptr<request_watcher> watcher,
                                                       fault& whose) {
  whose = fault::node;
  std::unique_ptr<sealed_call> call(new sealed_call(std::move(by)));
  auto api = api_request::make(call->by_->api, sealed.size());
  if (!api) return api.why();
  call->api_ = *std::move(api);
  if (auto ok = call->unseal(sealed, paid, std::move(watcher), whose); !ok) {
    call->forget();
    return ok.why();
  }
  return call;
}

sealed_call::~sealed_call() { open_.reset(); }

result<void> sealed_call::unseal(bytes_view sealed, const payment& paid,
                                 std::shared_ptr<request_watcher> watcher, fault& whose) {
  whose = fault::client;
  auto opened = open_request(by_->key, sealed, by_->epoch, paid.hash, api_->memory());
  if (!opened) return opened.why();
  auto seen = by_->seen ? by_->seen->admit(opened->enc, paid.spends) : seal_memory::answer::fresh;
  if (seen == seal_memory::answer::full) whose = fault::node;
  if (seen != seal_memory::answer::fresh)
    return seen == seal_memory::answer::full
               ? fail("seal: no more can be remembered; try the next roster")
               : fail("seal: it or its token was here before");
  receipt_ = {.token_hash = paid.hash,
              .request_hash = opened->request_hash,
              .release = by_->release,
              .epoch = opened->epoch};
  sealer_.emplace(std::move(opened->answer));
  open_.emplace(std::move(opened->plain));
  auto http = read_request(open_->plain, api_->memory());
  if (!http) return http.why();
  open_->http = *std::move(http);
  route(std::move(watcher));
  return {};
}

void sealed_call::route(std::shared_ptr<request_watcher> watcher) {
  const auto& http = open_->http;
  bool chat = http.path == "/v1/chat/completions";
  if (http.method != "POST" || (!chat && http.path != "/v1/completions")) {
    api_->refuse(no_such_path, *this);
    return;
  }
  auto what = chat ? api_call::chat : api_call::completion;
  if (api_->begin(what, http.content(), std::move(watcher), *this)) return;
  cancelled_ = true;
  fate_ = fate::turned_away;
}

void sealed_call::head(const answer_head& h) {
  if (h.status >= 400) fate_ = fate::refused;
  std::string retry = fmt::format("{}", h.retry_after_s), length;
  std::array<bhttp_field, 3> fields{bhttp_field{"content-type", h.content_type}};
  size_t n = 1;
  if (h.retry_after_s > 0) fields[n++] = {"retry-after", retry};
  if (h.content_length)
    fields[n++] = {"content-length", length = fmt::format("{}", *h.content_length)};
  auto ok = writer_.head(uint32_t(h.status), std::span(fields).first(n), open_->pending);
  check(bool(ok));
}

void sealed_call::piece(std::string_view bytes) { writer_.content(bytes, open_->pending); }

bool sealed_call::next(std::vector<std::byte>& out) {
  if (receipt_said_ || cancelled_) return false;
  if (!ended_ && api_->over()) {
    writer_.end(open_->pending);
    ended_ = true;
  }
  std::string_view rest = std::string_view(open_->pending).substr(open_->said);
  if (rest.empty()) {
    if (!ended_) return false;
    forget();
    seal_receipt(out);
    return true;
  }
  if (!named_) {
    auto nonce = sealer_->first();
    out.insert(out.end(), nonce.begin(), nonce.end());
    named_ = true;
  }
  rest = rest.substr(0, piece_bytes_max);
  auto sealed = sealer_->seal(as_bytes(rest), false, out);
  check(bool(sealed));
  open_->said += rest.size();
  if (open_->said == open_->pending.size()) {
    open_->pending.clear();
    open_->said = 0;
  }
  return true;
}

void sealed_call::seal_receipt(std::vector<std::byte>& out) {
  receipt_.arenas = report_.arenas;
  receipt_.bytes_wiped = report_.bytes_wiped;
  auto text = sign_receipt(by_->key, receipt_);
  auto sealed = sealer_->seal(text, true, out);
  check(bool(sealed));
  receipt_said_ = true;
}

void sealed_call::cancel() {
  if (cancelled_ || receipt_said_) return;
  cancelled_ = true;
  fate_ = fate::cancelled;
  if (api_) api_->cancel();
}

void sealed_call::forget() {
  if (!api_) return;
  open_.reset();
  report_ = api_->forget();
  api_.reset();
}

}  // namespace lethe
