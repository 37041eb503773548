#pragma once

#include "runtime/bhttp/response_reader.hpp"
#include "runtime/client/oblivious_channel.hpp"
#include "runtime/client/wiping_memory.hpp"
#include "runtime/crypto/seal_answer.hpp"
#include "runtime/gateway/inner_request.hpp"

namespace lethe {

/// What the gateway said instead of an answer.
struct gateway_refusal {
  uint32_t status = 0;
  change_word change = change_word::absent;
  std::string challenge, node_refusal;
  std::string title;  // its words for people, and nobody's but its own: short, printable
};

/// Takes what the gateway answers to a sealed request: a node's sealed answer, which is opened and
/// handed on as it comes, or a refusal. Padding and receipt follow the answer's end.
class sealed_answer final : public inner_sink {
 public:
  sealed_answer(answer_opener opener, inner_sink& to)
      : opener_(std::move(opener)),
        to_(to),
        plain_(&memory_),
        content_(&memory_),
        reader_(&memory_) {}

  bool head(uint32_t status, std::span<const bhttp_field> fields) override;
  bool content(std::string_view piece) override;
  /// When the gateway's answer is whole: that the node's is, too.
  result<receipt> finish();

  /// Null if there is a node's answer. The title is there once it is whole.
  const gateway_refusal* refused() const { return refusal_ ? &*refusal_ : nullptr; }
  /// Why it wanted no more, if it was not the sink's wish.
  const std::optional<error>& why() const { return why_; }
  bool began() const { return began_; }
  bool whole() const { return whole_; }
  uint32_t status() const { return reader_.status(); }
  const node_public* node() const { return opener_.node(); }

 private:
  bool bad(const result<void>& what);
  void tell_whole();
  void hear(std::string_view problem);

  answer_opener opener_;
  inner_sink& to_;
  wiping_memory memory_;
  std::pmr::string plain_, content_;
  bhttp_response_reader reader_;  // of the node's answer
  std::optional<gateway_refusal> refusal_;
  std::string problem_;
  std::optional<error> why_;
  bool began_ = false, whole_ = false;
};

}  // namespace lethe
