#pragma once

#include "runtime/crypto/ohttp_answer.hpp"
#include "runtime/crypto/ohttp_keys.hpp"

/// Both ends of a request (RFC 9458, section 4.3, and the chunked one).
namespace lethe {

/// The client's end. After an error it seals nothing more.
class ohttp_request_sealer {
 public:
  static result<ohttp_request_sealer> make(const ohttp_config& to, ohttp_form form);
  /// With an ephemeral key that is used nowhere else, as published vectors prescribe.
  static result<ohttp_request_sealer> make(const ohttp_config& to, ohttp_form form,
                                           const hpke_key& ephemeral);

  /// Appends the next piece, and the head before the first one. A request of known length has one
  /// piece, the final one; a chunked one pieces of 1 to limits::chunk_plain_bytes_max, of which
  /// only the final one may be empty. The key is gone with the final piece.
  result<void> seal(bytes_view plain, bool final, std::vector<std::byte>& out);
  bool ended() const noexcept { return body_.ended(); }
  /// What opens the answer: once, after the final piece. A client sends its whole request before
  /// it reads.
  result<ohttp_answer_opener> answer();

 private:
  ohttp_request_sealer(ohttp_body_sealer body, ohttp_exchange exchange)
      : body_(std::move(body)), exchange_(std::move(exchange)) {}

  ohttp_body_sealer body_;
  std::optional<ohttp_exchange> exchange_;
};

/// A request of known length, and what opens the answer to it.
struct ohttp_sealed_request {
  std::vector<std::byte> message;
  ohttp_answer_opener answer;
};
result<ohttp_sealed_request> seal_ohttp_request(const ohttp_config& to, bytes_view plain);

/// The gateway's end: takes the request in pieces of any size. After an error it opens nothing
/// more, and what the request started must be undone.
class ohttp_request_opener {
 public:
  /// The keys outlive it. `now` is when the request came; its content has up to `bytes_max`.
  ohttp_request_opener(const ohttp_keys& keys, ohttp_form form, uint64_t now,
                       size_t bytes_max = limits::ohttp_whole_bytes_max)
      : keys_(keys), form_(form), now_(now), bytes_max_(bytes_max) {}

  /// Appends what opens; of a request of known length nothing before finish(). What was opened
  /// before under the same key is refused before any of it is there. A call that fails adds
  /// nothing.
  result<void> push(bytes_view content, std::pmr::string& out);
  /// When the content has ended: what the answer is sealed with.
  result<ohttp_exchange> finish(std::pmr::string& out);
  /// After an error, what to tell the client.
  ohttp_refusal refusal() const noexcept { return refusal_; }

 private:
  result<void> take(bytes_view content, std::pmr::string& out);
  result<void> take_head(bytes_view& content);
  bool fill_front(size_t bytes, bytes_view& content);
  result<void> begin(const ohttp_head& head, const ohttp_keys::accepted& key);
  result<void> remember();
  result<ohttp_exchange> end(std::pmr::string& out);
  error refused(ohttp_refusal kind, error why);
  void give_up(std::pmr::string& out, size_t at) noexcept;

  const ohttp_keys& keys_;
  ohttp_form form_;
  uint64_t now_;
  size_t bytes_max_, taken_ = 0;
  std::vector<std::byte> front_;  // the head, then enc
  std::optional<ohttp_body_opener> body_;
  std::optional<ohttp_exchange> exchange_;
  std::shared_ptr<seen_seals> seen_;  // until this seal is remembered there
  bool over_ = false;
  ohttp_refusal refusal_ = ohttp_refusal::none;
};

}  // namespace lethe
