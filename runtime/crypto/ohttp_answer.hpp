#pragma once

#include "runtime/crypto/ohttp_body.hpp"

/// Both ends of an answer (RFC 9458, section 4.4, and the chunked one).
namespace lethe {

/// The gateway's end. After an error it seals nothing more.
class ohttp_answer_sealer {
 public:
  explicit ohttp_answer_sealer(ohttp_exchange exchange);
  /// With a nonce of answer_nonce_bytes that is used nowhere else, as published vectors prescribe.
  ohttp_answer_sealer(ohttp_exchange exchange, bytes_view nonce);

  /// Appends the next piece, and the nonce before the first one. The answer to a request of known
  /// length has one piece, the final one; a chunked one pieces of 1 to
  /// limits::chunk_plain_bytes_max of which only the final one may be empty. The key is gone with
  /// the final piece.
  result<void> seal(bytes_view plain, bool final, std::vector<std::byte>& out) {
    return body_.seal(plain, final, out);
  }
  bool ended() const noexcept { return body_.ended(); }

 private:
  ohttp_body_sealer body_;
};

/// The client's end: takes the answer in pieces of any size. After an error it opens nothing more.
class ohttp_answer_opener {
 public:
  /// An answer of known length has up to `whole_bytes_max`. A chunked one has no end of its own:
  /// no more than a chunk of it is held.
  explicit ohttp_answer_opener(ohttp_exchange exchange,
                               size_t whole_bytes_max = limits::ohttp_whole_bytes_max)
      : exchange_(std::move(exchange)), whole_bytes_max_(whole_bytes_max) {}

  ohttp_form form() const noexcept { return exchange_.form; }
  /// Appends what opens; of an answer of known length nothing before finish(). A call that fails
  /// adds nothing, and the answer is lost: what came of it before may lack its end.
  result<void> push(bytes_view content, std::pmr::string& out);
  /// When the content has ended. Without it the answer may have been cut off.
  result<void> finish(std::pmr::string& out);
  ohttp_refusal refusal() const noexcept { return refusal_; }

 private:
  result<void> settled(result<void> done, std::pmr::string& out, size_t at);
  result<void> take(bytes_view content, std::pmr::string& out);
  result<void> end(std::pmr::string& out);
  void drop_secrets() noexcept;

  ohttp_exchange exchange_;
  size_t whole_bytes_max_, taken_ = 0;
  std::vector<std::byte> nonce_;
  std::optional<ohttp_body_opener> body_;  // once the nonce is there
  bool over_ = false;
  ohttp_refusal refusal_ = ohttp_refusal::none;
};

}  // namespace lethe
