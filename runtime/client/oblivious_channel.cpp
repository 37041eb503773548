#include "runtime/client/oblivious_channel.hpp"

#include "runtime/bhttp/request.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/client/client_limits.hpp"
#include "runtime/client/exchange_watcher.hpp"
#include "runtime/client/wiping_memory.hpp"
#include "runtime/crypto/ohttp_names.hpp"
#include "runtime/crypto/ohttp_request.hpp"
#include "runtime/json/json_slice.hpp"

namespace lethe {

namespace {

// Looks and claims have one size for the relay.
constexpr size_t padded_to = 1024;

/// What is asked, as one bhttp message with padding.
result<void> write_padded(const inner_ask& what, std::string_view authority,
                          std::pmr::string& out) {
  out.reserve(what.content.size() + 4 * padded_to);
  auto written = write_request({.method = what.method,
                                .authority = authority,
                                .path = what.path,
                                .fields = what.fields,
                                .content = what.content},
                               out);
  if (written) out.append((padded_to - out.size() % padded_to) % padded_to, '\0');
  return written;
}

result<void> seal_all(ohttp_request_sealer& sealer, bytes_view plain, std::vector<std::byte>& out) {
  for (bool final = false; !final;) {
    bytes_view piece = plain.first(std::min(plain.size(), limits::chunk_plain_bytes_max));
    plain = plain.subspan(piece.size());
    final = plain.empty();
    if (auto ok = sealer.seal(piece, final, out); !ok) return ok;
  }
  return {};
}

/// Whether a refusal outside says that the key is unknown (RFC 9458, section 5.3).
bool names_key(const http_reply& head, std::string_view body) {
  if (head.status != 400 || head.field("content-type") != ohttp_names::problem) return false;
  auto json = check_json(body);
  auto type = json && json->is(json_kind::object) ? json->find("type") : std::nullopt;
  return type && type->says(ohttp_names::key_problem);
}

call_end not_reached(int status) {
  return fault(call_fault::busy, "the relay answers {}: it does not reach the gateway", status);
}

/// Of an answer that holds no sealed one.
call_end refused_outside(const http_reply& head, std::string_view body) {
  if (names_key(head, body))
    return fault(call_fault::stale_key, "the gateway does not take this key any more");
  if (head.status == 413)
    return fault(call_fault::request, "relay or gateway: the request is too large for them");
  if (head.status >= 502) return not_reached(head.status);
  return fault(call_fault::gateway, "relay or gateway answers {} outside the sealed layer",
               head.status);
}

/// Opens an answer as it comes and hands on what is inside.
class answer_reading {
 public:
  answer_reading(ohttp_answer_opener& opener, inner_sink& sink)
      : opener_(opener), sink_(sink), plain_(&memory_), content_(&memory_), reader_(&memory_) {}

  call_end take(std::string_view piece) {
    plain_.clear();
    if (auto ok = opener_.push(as_bytes(piece), plain_); !ok) return bad(ok);
    return read_on();
  }
  call_end finish() {
    plain_.clear();
    if (auto ok = opener_.finish(plain_); !ok)
      return {call_fault::answer, fail("the answer was cut off: {}", ok.why().text)};
    if (auto end = read_on(); !end) return end;
    if (auto ok = reader_.finish(); !ok) return bad(ok);
    return {};
  }

 private:
  static call_end bad(const result<void>& why) { return {call_fault::gateway, why.why()}; }
  call_end read_on() {
    content_.clear();
    if (auto ok = reader_.feed(plain_, content_); !ok) return bad(ok);
    bool more = true;
    if (reader_.has_head() && !std::exchange(headed_, true))
      more = sink_.head(reader_.status(), reader_.fields());
    if (more && !content_.empty()) more = sink_.content(content_);
    return more ? call_end{} : fault(call_fault::cancelled, "the answer is not wanted any more");
  }

  ohttp_answer_opener& opener_;
  inner_sink& sink_;
  wiping_memory memory_;
  std::pmr::string plain_, content_;
  bhttp_response_reader reader_;
  bool headed_ = false;
};

/// One POST to a relay, from its first byte to its answer's last.
class relay_exchange {
 public:
  relay_exchange(http_client& client, const server_at& relay,
                 std::optional<std::chrono::milliseconds> wait, std::stop_token stop)
      : client_(client),
        watcher_(std::make_shared<exchange_watcher>(wait)),
        call_(client.ask(call_to(relay), watcher_)),
        on_stop_(std::move(stop), [w = watcher_] { w->stop(); }) {}
  ~relay_exchange() { client_.cancel(call_); }

  ask_end run(bytes_view sealed, answer_reading& reading) {
    // The head of it says whose key it is for, and no more: if that gets nowhere, nothing left.
    client_.write(call_, as_text(sealed.first(ohttp_head::wire_bytes)));
    if (!watcher_->wait_connected()) return {over(call_fault::relay), false};
    client_.write(call_, as_text(sealed.subspan(ohttp_head::wire_bytes)));
    client_.finish(call_);
    const http_reply* head = watcher_->wait_head();
    if (!head) return {over(call_fault::relay), true};
    return {head->status == 200 ? open(*head, reading) : refusal(*head), true};
  }

 private:
  static http_call call_to(const server_at& relay) {
    return {.to = relay.origin,
            .method = "POST",
            .path = relay.prefix + "/",
            .fields = {{"Content-Type", std::string(ohttp_names::chunked_request)},
                       {"Incremental", "?1"}},
            .streamed = true};
  }
  call_end over(call_fault kind) {
    auto how = watcher_->how();
    if (!how) return fault(call_fault::cancelled, "the call was stopped");
    if (*how) return {kind, fail("the answer has no end")};
    auto end = fault(kind, "relay: {}", how->why().text);
    end.hung = watcher_->hung();
    return end;
  }
  call_end open(const http_reply& head, answer_reading& reading) {
    if (head.field("content-type") != ohttp_names::chunked_response)
      return fault(call_fault::gateway, "the answer is not of the type {}",
                   ohttp_names::chunked_response);
    for (auto piece = watcher_->wait_piece(); !piece.empty(); piece = watcher_->wait_piece()) {
      if (auto end = reading.take(piece); !end) return end;
      client_.took(call_, piece.size());
    }
    auto how = watcher_->how();
    return how && *how ? reading.finish() : over(call_fault::answer);
  }
  call_end refusal(const http_reply& head) {
    std::string body;
    for (auto piece = watcher_->wait_piece(); !piece.empty(); piece = watcher_->wait_piece()) {
      body += piece;
      if (body.size() > limits::problem_bytes_max) break;
      client_.took(call_, piece.size());
    }
    return refused_outside(head, body);
  }

  http_client& client_;
  std::shared_ptr<exchange_watcher> watcher_;
  uint64_t call_;
  std::stop_callback<std::function<void()>> on_stop_;
};

/// A page that a relay shows to everybody.
call_result<http_whole> get_page(http_client& client, http_call call, size_t bytes_max,
                                 std::chrono::milliseconds wait, std::stop_token stop) {
  auto watcher = std::make_shared<exchange_watcher>(wait);
  const uint64_t id = client.ask(std::move(call), watcher);
  std::stop_callback on_stop(std::move(stop), [watcher] { watcher->stop(); });
  http_whole page;
  if (auto* head = watcher->wait_head()) page.head = *head;
  for (auto piece = watcher->wait_piece(); !piece.empty(); piece = watcher->wait_piece()) {
    page.body += piece;
    if (page.body.size() > bytes_max) break;
    client.took(id, piece.size());
  }
  client.cancel(id);
  auto how = watcher->how();
  if (page.body.size() > bytes_max) return page;
  if (!how) return fault(call_fault::relay, "relay: the call was stopped");
  if (*how) return page;
  auto end = fault(call_fault::relay, "relay: {}", how->why().text);
  end.hung = watcher->hung();
  return end;
}

class whole_sink final : public inner_sink {
 public:
  explicit whole_sink(size_t bytes_max) : bytes_max_(bytes_max) {}
  bool head(uint32_t status, std::span<const bhttp_field> fields) override {
    got.status = status;
    for (const auto& f : fields)
      if (f.name == "content-type") got.content_type = f.value;
    return true;
  }
  bool content(std::string_view piece) override {
    if (piece.size() > bytes_max_ - got.body.size()) return too_large = true, false;
    auto bytes = as_bytes(piece);
    got.body.insert(got.body.end(), bytes.begin(), bytes.end());
    return true;
  }

  inner_whole got;
  bool too_large = false;

 private:
  size_t bytes_max_;
};

}  // namespace

/// `ask` tells how it went with one relay; the next is tried while nothing has left.
template <class Try>
auto oblivious_channel::with_relays(Try ask) {
  const size_t first = good_;
  for (size_t i = 0;; ++i) {
    const size_t at = (first + i) % relays_.size();
    auto [end, more] = ask(relays_[at]);
    if (!more) good_ = at;
    if (!more || i + 1 == relays_.size()) return end;
  }
}

call_result<std::vector<std::byte>> oblivious_channel::fetch_keys(std::stop_token stop) {
  using keys = call_result<std::vector<std::byte>>;
  auto from = [&](const server_at& relay) -> std::pair<keys, bool> {
    http_call call{.to = relay.origin,
                   .path = relay.prefix + std::string(ohttp_names::gateway_path)};
    auto got = get_page(client_, std::move(call), limits::ohttp_keys_bytes_max, look_wait_, stop);
    if (!got) return {got.end, true};
    if (got->head.status >= 502) return {not_reached(got->head.status), true};
    if (got->head.status != 200)
      return {fault(call_fault::relay, "the relay answers {} when asked for the gateway's keys",
                    got->head.status),
              true};
    if (got->head.field("content-type") != ohttp_names::keys ||
        got->body.size() > limits::ohttp_keys_bytes_max)
      return {fault(call_fault::gateway, "what the relay passes on are no {}", ohttp_names::keys),
              false};
    auto bytes = as_bytes(got->body);
    return {std::vector<std::byte>(bytes.begin(), bytes.end()), false};
  };
  return with_relays(from);
}

ask_end oblivious_channel::ask_within(patience wait, const ohttp_config& to, const inner_ask& what,
                                      inner_sink& sink, std::stop_token stop) {
  wiping_memory memory;
  std::pmr::string plain(&memory);
  if (auto ok = write_padded(what, authority_, plain); !ok)
    return {{call_fault::request, ok.why()}, false};
  auto sealer = ohttp_request_sealer::make(to, ohttp_form::chunked);
  if (!sealer) return {{call_fault::gateway, sealer.why()}, false};
  std::vector<std::byte> sealed;
  auto ok = seal_all(*sealer, as_bytes(plain), sealed);
  auto opener = ok ? sealer->answer() : ok.why();
  if (!opener) return {{call_fault::request, opener.why()}, false};
  return with_relays([&](const server_at& relay) -> std::pair<ask_end, bool> {
    answer_reading reading(*opener, sink);
    auto end = relay_exchange(client_, relay, wait, stop).run(sealed, reading);
    return {end, end.fault == call_fault::relay && !end.left};
  });
}

call_result<inner_whole> oblivious_channel::ask_whole(const ohttp_config& to, const inner_ask& what,
                                                      size_t body_bytes_max, std::stop_token stop) {
  whole_sink sink(body_bytes_max);
  auto end = ask_within(look_wait_, to, what, sink, std::move(stop));
  if (sink.too_large)
    return fault(call_fault::gateway, "{}: more than {} bytes", what.path, body_bytes_max);
  if (!end) return call_end(end);
  return std::move(sink.got);
}

}  // namespace lethe
