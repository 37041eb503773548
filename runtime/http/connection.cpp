#include "runtime/http/connection.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/wipe.hpp"

namespace lethe {
namespace {

constexpr size_t body_step_min = size_t{64} << 10;

}  // namespace

connection::connection(serving& s, kj::Own<kj::AsyncIoStream> stream, uint32_t listener,
                       size_t body_window)
    : s_(s),
      stream_(kj::mv(stream)),
      listener_(listener),
      window_(body_window),
      deadline_(after(s.limits.idle_ms)),
      buffer_(std::make_unique<char[]>(s.limits.head_bytes_max)),
      send_deadline_(deadline_),
      tasks_(*this) {}

connection::~connection() noexcept(false) { wipe(buffer_.get(), to_); }

void connection::serve() { read_on(); }

/// Reads as long as there is room; an answer's client that sends ahead more than a head's worth is
/// left waiting.
void connection::read_on() {
  if (reading_ || stage_ == stage::dead) return;
  direct_ = stage_ == stage::body && request_ && !chunked_ && input().empty();
  char* to = nullptr;
  size_t room = 0;
  if (direct_) {
    to = body_room(1);
    if (to == nullptr) return refuse(503);
    room = std::min(body_room_, size_t(content_length_)) - body_has_;
  } else {
    std::memmove(buffer_.get(), buffer_.get() + from_, to_ - from_);
    size_t had = std::exchange(to_, to_ - std::exchange(from_, 0));
    wipe(buffer_.get() + to_, had - to_);
    to = buffer_.get() + to_;
    room = s_.limits.head_bytes_max - to_;
  }
  if (room == 0) return;
  reading_ = true;
  auto read = kj::evalNow([&] { return stream_->tryRead(to, 1, room); });
  tasks_.add(read.then([this](size_t bytes) {
    reading_ = false;
    if (bytes > 0) return took(bytes);
    if (stage_ != stage::closing || !writing_) close_now();  // a refusal goes out first
  }));
}

void connection::took(size_t bytes) {
  if (direct_) {
    body_has_ += bytes;
    direct_ = false;
  } else {
    to_ += bytes;
  }
  if (stage_ == stage::closing) {
    request_.reset();
    wipe_input();
  }
  advance();
  read_on();
}

void connection::consume(size_t bytes) {
  wipe(buffer_.get() + from_, bytes);
  from_ += bytes;
}

void connection::wipe_input() { consume(to_ - from_); }

/// Takes the input as far as it goes.
void connection::advance() {
  if (stage_ == stage::head && !advance_head()) return;
  if (stage_ == stage::body && advance_body()) arrive();
}

/// True when the stage is another one.
bool connection::advance_head() {
  while (input().starts_with("\r\n")) consume(2);
  if (input().empty() || input() == "\r") return false;
  if (!std::exchange(started_, true)) deadline_ = after(s_.limits.request_ms);
  auto found = find_head_end(input(), s_.limits.head_bytes_max);
  if (auto* no = std::get_if<http_refusal>(&found)) return refuse(no->status), false;
  auto end = std::get<0>(found);
  return end && take_head(*end);
}

bool connection::take_head(size_t bytes) {
  const auto& l = s_.limits;
  // Beside the texts: their index, and alignment.
  size_t index_bytes = 4 * l.fields_max * sizeof(http_field) + 16 * sizeof(http_field) + 256;
  auto memory = arena::make(l.head_bytes_max + index_bytes + l.body_bytes_max + l.arena_bytes_more);
  if (!memory) return refuse(503), false;
  auto* text = static_cast<char*>(memory->take(bytes, 1));
  if (text == nullptr) return refuse(503), false;
  std::memcpy(text, input().data(), bytes);
  consume(bytes);
  auto read = read_head({text, bytes}, l, memory->resource());
  if (auto* no = std::get_if<http_refusal>(&read)) return refuse(no->status), false;
  if (window_ == 0 && std::get<http_head>(read).content_length > s_.bodies->left())
    return refuse(503), false;
  request_.emplace(++s_.requests, listener_, *std::move(memory));
  request_->held = body_share(s_.bodies);
  request_->head = std::move(std::get<http_head>(read));
  const auto& head = request_->head;
  old_client_ = head.old;
  head_only_ = head.method == "HEAD";
  keep_alive_ = head.keep_alive;
  chunked_ = head.chunked;
  content_length_ = head.content_length;
  chunks_ = {};
  body_ = nullptr;
  body_has_ = body_room_ = untaken_ = 0;
  stage_ = stage::body;
  bool has_body = head.chunked || head.content_length > 0;
  if (head.wants_continue && has_body && input().empty()) {
    queue_.push_back(http_block::frame("HTTP/1.1 100 Continue\r\n\r\n"));
    flush();
  }
  if (window_ > 0) announce();
  return true;
}

/// Room for so many bytes at the body's end, which stays in one piece: nobody else takes from the
/// arena before the request arrives. Memory is taken as the body comes, not as it is announced.
char* connection::body_room(size_t bytes) {
  if (body_room_ - body_has_ < bytes) {
    size_t step = std::max({bytes, body_step_min, body_has_});
    size_t most = chunked_ ? s_.limits.body_bytes_max : size_t(content_length_);
    step = std::max(bytes, std::min(step, most - body_room_));
    if (!request_->held.grow(step)) return nullptr;
    auto* more = static_cast<char*>(request_->memory.take(step, 1));
    if (more == nullptr) return nullptr;
    if (body_ == nullptr) body_ = more;
    check(more == body_ + body_room_);
    body_room_ += step;
  }
  return body_ + body_has_;
}

/// True when the body is whole.
bool connection::advance_body() { return chunked_ ? take_chunks() : take_length(); }

/// False when there is no memory for it.
bool connection::keep(std::string_view piece) {
  if (piece.empty()) return true;
  if (request_) {
    char* to = body_room(piece.size());
    if (to == nullptr) return refuse(503), false;
    std::memcpy(to, piece.data(), piece.size());
  } else {
    untaken_ += piece.size();
    s_.handler.came(id_, piece);
  }
  body_has_ += piece.size();
  return true;
}

bool connection::take_length() {
  size_t left = size_t(content_length_) - body_has_;
  size_t here = std::min(left, input().size());
  if (!request_) here = std::min(here, window_ - std::min(window_, untaken_));
  if (!keep(input().substr(0, here))) return false;
  consume(here);
  return here == left;
}

bool connection::take_chunks() {
  while (!input().empty() && (request_ || untaken_ < window_)) {
    auto step = chunks_.read(input());
    if (step.what == chunk_reader::verdict::bad) return refuse(400), false;
    uint64_t announced = step.payload.size() + chunks_.left();
    if (announced > s_.limits.body_bytes_max - body_has_) return refuse(413), false;
    if (!keep(step.payload)) return false;
    consume(step.consumed);
    if (step.what == chunk_reader::verdict::done) return true;
  }
  return false;
}

/// The request goes to the program, whole or before its body.
void connection::announce() {
  begun_ = ended_ = false;
  id_ = request_->id;
  request_->body = {body_, body_has_};
  s_.answering.emplace(id_, this);
  http_request arrived = *std::move(request_);
  request_.reset();
  s_.handler.arrived(*s_.server, std::move(arrived));
}

void connection::arrive() {
  stage_ = stage::answering;
  started_ = false;
  if (request_) return announce();
  s_.handler.whole(id_);
}

void connection::took_of_body(size_t bytes) {
  untaken_ -= std::min(untaken_, bytes);
  if (stage_ != stage::body) return;
  deadline_ = after(s_.limits.request_ms);
  advance();
  read_on();
}

/// Deadlines are looked at every few milliseconds rather than each having a timer.
void connection::tick() {
  auto now = s_.timer.now();
  if (writing_ && now >= send_deadline_) return close_now();
  bool waits = stage_ == stage::answering || stage_ == stage::dead;
  if (waits || now < deadline_) return;
  if (stage_ == stage::closing || !started_) {
    if (!writing_) close_now();
  } else {
    refuse(408);
  }
}

void connection::drain() {
  if (stage_ == stage::head && !started_ && input().empty()) close_now();
}

void connection::close_now() {
  if (stage_ == stage::dead) return;
  stage_ = stage::dead;
  if (auto id = std::exchange(id_, 0)) {
    s_.answering.erase(id);
    s_.handler.left(id);
  }
  s_.bury();
}

}  // namespace lethe
