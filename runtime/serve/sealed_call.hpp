#pragma once

#include "runtime/bhttp/request.hpp"
#include "runtime/bhttp/response_writer.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/serve/api_request.hpp"
#include "runtime/serve/seal_memory.hpp"

namespace lethe {

/// What all requests under one key of an engine share.
struct sealed_service {
  api_service api;
  node_key key;
  uint32_t epoch = 0;
  hash32 release{};                   // digest of the program, for receipts
  std::shared_ptr<seal_memory> seen;  // none: whoever seals to this key is trusted not to repeat it
};

/// What a request was paid with; nothing where it needn't be.
struct payment {
  hash32 hash{};    // of the token: the seal is bound to it
  hash32 spends{};  // what no other request may spend
};

/// One sealed request from the seal to the wipe. It hands out sealed pieces one at a time, as its
/// client takes them; until then what is not yet sealed waits in the arena. The last piece is the
/// receipt, which exists only when the arenas do not.
class sealed_call final : private answer_sink {
 public:
  enum class fate : uint8_t {
    served,
    refused,      // the request was wrong
    turned_away,  // the engine had no room for it, or is lost: nothing will be said
    cancelled,
  };

  /// Whose fault it is that a call did not begin.
  enum class fault : uint8_t { client, node };
  /// Opens the seal and begins. An error: `whose` says, and nothing of it is left.
  static result<std::unique_ptr<sealed_call>> open(std::shared_ptr<const sealed_service> by,
                                                   bytes_view sealed, const payment& paid,
                                                   std::shared_ptr<request_watcher> watcher,
                                                   fault& whose);
  ~sealed_call() override;

  /// Takes what the engine made since.
  void pump() { api_->pump(*this); }
  /// Appends the next sealed piece; false: there is nothing to say yet, or any more.
  bool next(std::vector<std::byte>& out);
  bool said_all() const { return receipt_said_; }
  void cancel();
  /// Cancelled or turned away, and the engine is done with it: nothing more will be said.
  bool cancelled() const { return cancelled_ && (!api_ || api_->over()); }

  fate how() const { return fate_; }
  const api_report& report() const { return report_; }
  /// Wipes what is left. Only when all is said or it is cancelled.
  void forget();

 private:
  explicit sealed_call(std::shared_ptr<const sealed_service> by) : by_(std::move(by)) {}
  result<void> unseal(bytes_view sealed, const payment& paid,
                      std::shared_ptr<request_watcher> watcher, fault& whose);
  void route(std::shared_ptr<request_watcher> watcher);
  void head(const answer_head& h) override;
  void piece(std::string_view bytes) override;
  void seal_receipt(std::vector<std::byte>& out);

  std::shared_ptr<const sealed_service> by_;
  std::unique_ptr<api_request> api_;
  // In its arena, and ended before it:
  struct unsealed {
    explicit unsealed(std::pmr::string text)
        : plain(std::move(text)),
          http(plain.get_allocator().resource()),
          pending(plain.get_allocator().resource()) {}
    std::pmr::string plain;
    bhttp_request_view http;
    std::pmr::string pending;  // of the answer, not yet sealed from `said` on
    size_t said = 0;
  };
  std::optional<unsealed> open_;
  std::optional<answer_sealer> sealer_;
  bhttp_response_writer writer_;
  receipt receipt_;
  api_report report_;
  fate fate_ = fate::served;
  bool named_ = false;  // the first piece was sealed
  bool ended_ = false;  // the answer's end is in `pending`
  bool cancelled_ = false, receipt_said_ = false;
};

}  // namespace lethe
