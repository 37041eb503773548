#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>

#include "runtime/bhttp/fields.hpp"
#include "runtime/client/call_fault.hpp"
#include "runtime/client/client_limits.hpp"
#include "runtime/client/trust_file.hpp"
#include "runtime/crypto/ohttp_config.hpp"

namespace lethe {

/// What is asked of the gateway, inside the outer layer.
struct inner_ask {
  std::string_view method = "GET", path;
  std::span<const bhttp_field> fields;
  std::string_view content;
};

/// Where an answer goes as it is opened, on the asker's thread. Each may say: no further.
class inner_sink {
 public:
  virtual ~inner_sink() = default;
  virtual bool head(uint32_t status, std::span<const bhttp_field> fields) = 0;
  virtual bool content(std::string_view piece) = 0;
  /// There is no more of it; padding may follow.
  virtual void whole() {}
};

/// How an ask ended, and whether any of it may have left this machine: if not, whatever was in it
/// is as if it had never been asked.
struct ask_end : call_end {
  bool left = false;
};

/// A small answer as a whole.
struct inner_whole {
  uint32_t status = 0;
  std::string content_type;
  std::vector<std::byte> body;
};

/// The way to a gateway through a relay: the relay sees who asks and how much, the gateway what.
/// Calls block; any number of threads may ask. Relays are tried in turn while nothing has left.
class oblivious_channel {
 public:
  /// `authority` is the gateway's name inside. The client outlives the channel.
  /// Keys and whole answers end when nothing more of them came for `look_wait_ms`.
  oblivious_channel(http_client& client, std::vector<server_at> relays, std::string authority,
                    uint32_t look_wait_ms = limits::look_wait_ms)
      : client_(client),
        relays_(std::move(relays)),
        authority_(std::move(authority)),
        look_wait_(look_wait_ms) {
    check(!relays_.empty());
  }

  /// application/ohttp-keys as the relay passes them on: whoever uses them must know them from
  /// elsewhere.
  call_result<std::vector<std::byte>> fetch_keys(std::stop_token stop = {});

  /// Asks in chunks, so that the answer comes as it is made. It is whole if the end is good: what
  /// the sink got before any other end may lack its own.
  ask_end ask(const ohttp_config& to, const inner_ask& what, inner_sink& sink,
              std::stop_token stop = {}) {
    return ask_within({}, to, what, sink, std::move(stop));
  }
  /// The same for small answers; every status is an answer.
  call_result<inner_whole> ask_whole(const ohttp_config& to, const inner_ask& what,
                                     size_t body_bytes_max, std::stop_token stop = {});

 private:
  using patience = std::optional<std::chrono::milliseconds>;
  ask_end ask_within(patience wait, const ohttp_config& to, const inner_ask& what, inner_sink& sink,
                     std::stop_token stop);
  template <class Try>
  auto with_relays(Try ask);

  http_client& client_;
  std::vector<server_at> relays_;
  std::string authority_;
  std::chrono::milliseconds look_wait_;
  std::atomic<size_t> good_{0};  // the relay that was reached last
};

}  // namespace lethe
