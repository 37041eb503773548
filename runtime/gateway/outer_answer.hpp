#pragma once

#include <memory_resource>

#include "runtime/bhttp/response_writer.hpp"
#include "runtime/crypto/ohttp_answer.hpp"
#include "runtime/gateway/inner_request.hpp"

namespace lethe {

/// One answer on its way out: what stands inside is written as it comes, and sealed for the client.
/// A whole one leaves at its end, a chunked one piece by piece.
class outer_answer {
 public:
  /// A whole answer has up to that; more cuts it.
  static constexpr size_t whole_bytes_max = size_t{8} << 20, frame_bytes = 16;

  explicit outer_answer(ohttp_exchange exchange)
      : form_(exchange.form), sealer_(std::move(exchange)) {}

  ohttp_form form() const { return form_; }
  std::string_view media_type() const;
  bool begun() const { return begun_; }
  bool ended() const { return sealer_.ended(); }
  /// Whether its HTTP answer has begun; of a whole one only when it ends.
  bool begun_outside() const { return begun_outside_; }
  void begin_outside() { begun_outside_ = true; }

  /// The head leaves with what follows it.
  result<void> head(uint32_t status, std::span<const bhttp_field> fields);
  /// Each appends what can leave, as one chunk if it fits. After an error the answer must be cut.
  result<void> content(std::string_view piece, std::vector<std::byte>& out);
  result<void> end(std::string_view last_piece, std::vector<std::byte>& out);
  /// All three in one.
  result<void> whole(uint32_t status, std::string_view content_type, std::string_view content,
                     std::vector<std::byte>& out);
  result<void> problem(const inner_problem& why, std::vector<std::byte>& out);

 private:
  result<void> add(std::string_view piece);
  result<void> leave(bool final, std::vector<std::byte>& out);

  ohttp_form form_;
  ohttp_answer_sealer sealer_;
  bhttp_response_writer writer_;
  // Not yet sealed. Not in the request's arena, whose room is for its client to use up: a refusal
  // must always fit. What passes here is sealed for the client, or public.
  std::pmr::string plain_;
  bool begun_ = false, begun_outside_ = false;
};

}  // namespace lethe
