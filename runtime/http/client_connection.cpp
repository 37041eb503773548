#include "runtime/http/client_connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "runtime/http/request_head.hpp"

namespace lethe {
namespace {

constexpr size_t chunk_bytes = size_t{16} << 10;

constexpr std::string_view last_chunk = "0\r\n\r\n";

void add_chunks(std::string_view body, std::string& out) {
  for (size_t from = 0; from < body.size(); from += chunk_bytes) {
    auto piece = body.substr(from, chunk_bytes);
    fmt::format_to(std::back_inserter(out), "{:x}\r\n{}\r\n", piece.size(), piece);
  }
}

/// A call as it goes out, as far as it is known.
std::string framed(const http_call& c) {
  std::string out;
  auto at = std::back_inserter(out);
  std::string_view host = c.to.known_as.empty() ? c.to.host : c.to.known_as;
  bool v6 = host.find(':') != host.npos;
  fmt::format_to(at, "{} {} HTTP/1.1\r\nHost: {}{}{}:{}\r\n", c.method, c.path, v6 ? "[" : "", host,
                 v6 ? "]" : "", c.to.port);
  for (const auto& [name, value] : c.fields) fmt::format_to(at, "{}: {}\r\n", name, value);
  bool bodiless = c.body.empty() && (c.method == "GET" || c.method == "HEAD");
  if (c.chunked)
    out += "Transfer-Encoding: chunked\r\n";
  else if (!bodiless)
    fmt::format_to(at, "Content-Length: {}\r\n", c.body.size());
  out += "\r\n";
  if (!c.chunked) return out += c.body;
  add_chunks(c.body, out);
  if (!c.streamed) out += last_chunk;
  return out;
}

}  // namespace

client_connection::client_connection(client_shared& s, const http_origin& to)
    : s_(s),
      to_(to),
      deadline_(after(s.limits.connect_ms)),
      buffer_(std::make_unique<char[]>(s.limits.head_bytes_max)),
      tasks_(*this) {}

void client_connection::begin(open_call call) {
  call_ = std::move(call);
  out_ = framed(call_->what);
  credit_ = call_->what.streamed ? call_->what.body.size() : 0;
  finished_ = !call_->what.streamed;
  if (stage_ == stage::fresh) return connect();
  send();
}

void client_connection::connect() {
  stage_ = stage::connecting;
  auto found = kj::evalNow([this] {
    return s_.network.parseAddress(kj::StringPtr(to_.host.c_str(), to_.host.size()), to_.port);
  });
  auto stream = found.then([](kj::Own<kj::NetworkAddress>&& address) {
    auto opened = address->connect();
    return opened.attach(kj::mv(address));
  });
  stream = stream.then([this](kj::Own<kj::AsyncIoStream>&& plain) {
    fd_ = plain->getFd();
    return kj::mv(plain);
  });
  if (to_.tls)
    stream = stream.then([this](kj::Own<kj::AsyncIoStream>&& plain) {
      const auto& name = to_.known_as.empty() ? to_.host : to_.known_as;
      return s_.tls().wrapClient(kj::mv(plain), kj::StringPtr(name.c_str(), name.size()));
    });
  tasks_.add(stream.then([this](kj::Own<kj::AsyncIoStream>&& up) { connected(kj::mv(up)); }));
}

void client_connection::connected(kj::Own<kj::AsyncIoStream> stream) {
  stream_ = kj::mv(stream);
  send();
  read_on();
}

/// A close that the network has brought, and our loop has not heard of yet.
bool client_connection::still_there() const {
  char byte;
  KJ_IF_MAYBE (fd, fd_)
    return ::recv(*fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  return true;
}

void client_connection::send() {
  stage_ = stage::head;
  deadline_ = after(s_.limits.answer_ms);
  body_has_ = untaken_ = 0;
  chunks_ = {};
  write_on();
}

void client_connection::write_on() {
  bool up = stage_ == stage::head || stage_ == stage::body;
  if (writing_ || unwritable_ || !up || out_.empty()) return;
  writing_ = true;
  auto part = std::make_unique<std::string>(std::exchange(out_, {}));
  size_t credit = std::exchange(credit_, 0);
  auto written = kj::evalNow([&] { return stream_->write(part->data(), part->size()); });
  tasks_.add(written.attach(kj::mv(part))
                 .then(
                     [this, credit] {
                       writing_ = false;
                       if (stage_ == stage::body) deadline_ = after(s_.limits.stall_ms);
                       if (credit > 0 && call_) call_->who->drained(call_->id, credit);
                       write_on();
                     },
                     [this](kj::Exception&&) {
                       writing_ = false;
                       unwritable_ = true;  // it may have answered without reading on
                     }));
}

void client_connection::read_on() {
  bool full = stage_ == stage::body && untaken_ >= s_.limits.window_bytes;
  if (reading_ || dead() || full) return;
  std::memmove(buffer_.get(), buffer_.get() + from_, to_end_ - from_);
  to_end_ -= std::exchange(from_, 0);
  size_t room = s_.limits.head_bytes_max - to_end_;
  reading_ = true;
  auto read = kj::evalNow([&] { return stream_->tryRead(buffer_.get() + to_end_, 1, room); });
  tasks_.add(read.then([this](size_t bytes) {
    reading_ = false;
    if (bytes == 0) return at_end();
    came(bytes);
    read_on();
  }));
}

void client_connection::came(size_t bytes) {
  to_end_ += bytes;
  if (stage_ == stage::idle) return close_now();  // nobody asked
  if (stage_ == stage::body) deadline_ = after(s_.limits.stall_ms);
  advance();
}

void client_connection::at_end() {
  if (stage_ == stage::body && head_.frame == body_frame::until_close) return whole();
  if (stage_ == stage::body) return give_up(broke("its answer was cut off"));
  if (stage_ == stage::head)
    return give_up(unanswered("it closed the connection and did not answer"));
  close_now();
}

/// Takes the input as far as it goes.
void client_connection::advance() {
  while (stage_ == stage::head && advance_head()) {
  }
  while (stage_ == stage::body && advance_body()) {
  }
}

/// False when more must come first.
bool client_connection::advance_head() {
  auto found = find_head_end(input(), s_.limits.head_bytes_max);
  if (std::holds_alternative<http_refusal>(found))
    return give_up(broke("its answer's head is too long or not well-formed")), false;
  auto end = std::get<0>(found);
  if (!end) return false;
  auto read =
      read_reply(input().substr(0, *end), call_->what.method == "HEAD", s_.limits.fields_max);
  if (!read) return give_up(broke(read.why().text.c_str())), false;
  from_ += *end;
  if (read->status == 101) return give_up(broke("it changes to another protocol")), false;
  if (read->status < 200) return true;  // an interim answer
  head_ = *std::move(read);
  if (head_.frame == body_frame::length && head_.content_length > s_.limits.body_bytes_max)
    return give_up(broke("its answer is too large")), false;
  left_ = head_.frame == body_frame::length ? head_.content_length : 0;
  stage_ = stage::body;
  deadline_ = after(s_.limits.stall_ms);
  call_->who->began(call_->id, head_);
  return true;
}

/// False when more must come first, or this was the end.
bool client_connection::advance_body() {
  if (head_.frame == body_frame::none || (head_.frame == body_frame::length && left_ == 0))
    return whole(), false;
  if (input().empty()) return false;
  if (head_.frame == body_frame::chunks) {
    auto step = chunks_.read(input());
    if (step.what == chunk_reader::verdict::bad)
      return give_up(broke("its answer is not well-formed HTTP: a chunk")), false;
    if (!deliver(step.payload)) return false;
    from_ += step.consumed;
    if (step.what == chunk_reader::verdict::done) return whole(), false;
    return true;
  }
  auto piece = input();
  if (head_.frame == body_frame::length)
    piece = piece.substr(0, size_t(std::min<uint64_t>(left_, piece.size())));
  if (!deliver(piece)) return false;
  from_ += piece.size();
  if (head_.frame == body_frame::length) left_ -= piece.size();
  return true;
}

bool client_connection::deliver(std::string_view piece) {
  if (piece.empty()) return true;
  body_has_ += piece.size();
  if (body_has_ > s_.limits.body_bytes_max) return give_up(broke("its answer is too large")), false;
  untaken_ += piece.size();
  call_->who->came(call_->id, piece);
  return true;
}

void client_connection::write(std::string_view piece) {
  if (finished_ || !call_) return;
  if (stage_ == stage::head) deadline_ = after(s_.limits.answer_ms);
  add_chunks(piece, out_);
  credit_ += piece.size();
  write_on();
}

void client_connection::finish() {
  if (std::exchange(finished_, true) || !call_) return;
  out_ += last_chunk;
  write_on();
}

void client_connection::took(size_t bytes) {
  untaken_ -= std::min(untaken_, bytes);
  deadline_ = after(s_.limits.stall_ms);
  if (stage_ == stage::body) read_on();
}

void client_connection::whole() {
  bool clean = head_.keep_alive && input().empty() && finished_ && out_.empty() && !writing_;
  end({});
  if (!clean) return close_now();
  stage_ = stage::idle;
  deadline_ = after(s_.limits.idle_ms);
  s_.settle();
}

void client_connection::end(const result<void>& how) {
  auto call = std::exchange(call_, {});
  if (!call) return;
  s_.call_ended(call->id);
  call->who->ended(call->id, how);
}

void client_connection::give_up(const error& why) {
  close_now();
  end(why);
}

void client_connection::close_now() {
  if (dead()) return;
  stage_ = stage::dead;
  s_.settle();
}

error client_connection::broke(const char* what) const { return fail("{}: {}", to_.text(), what); }

/// So a port for TLS treats whoever speaks in the clear.
error client_connection::unanswered(const char* what) const {
  if (to_.tls) return broke(what);
  return fail("{}: {}; where TLS is spoken the URL begins with https", to_.text(), what);
}

void client_connection::taskFailed(kj::Exception&& e) {
  if (stage_ == stage::connecting) {
    // What KJ says here is the system's or OpenSSL's word, and nothing of the call.
    return give_up(fail("{}: no connection{}: {}", to_.text(), to_.tls ? " with TLS" : "",
                        e.getDescription().cStr()));
  }
  give_up(stage_ == stage::head ? unanswered("the connection broke")
                                : broke("the connection broke"));
}

void client_connection::tick() {
  if (dead() || s_.timer.now() < deadline_) return;
  bool waits_for_us = stage_ == stage::body && untaken_ >= s_.limits.window_bytes;
  if (waits_for_us) return;
  switch (stage_) {
    case stage::connecting:
      return give_up(broke("no connection in time"));
    case stage::head:
      return give_up(broke("no answer in time"));
    case stage::body:
      return give_up(broke("its answer stopped"));
    default:
      return close_now();
  }
}

}  // namespace lethe
