#pragma once

#include <cstddef>
#include <cstdint>

namespace lethe {

/// What one client may ask of the server. A client that asks for more gets the status beside it.
struct http_limits {
  size_t head_bytes_max = size_t{16} << 10;  // 431; request line and fields, with their line ends
  uint32_t fields_max = 100;                 // 431
  size_t body_bytes_max = size_t{32} << 20;  // 413, before more of it is read
  /// 503, before more is read; of all bodies whose requests their handler still has, and hasn't let
  /// go of (`http_request::held`). Not of bodies that come in pieces.
  size_t bodies_bytes_max = SIZE_MAX;
  /// Address space (not memory) of a request's arena beyond head and body: for its handler's use.
  size_t arena_bytes_more = size_t{64} << 20;
  uint32_t connections_max = 1024;  // 503; with 64 more being refused, none is accepted
  uint32_t handshake_ms = 10'000;   // of TLS, then it is closed
  uint32_t idle_ms = 60'000;        // between requests, then it is closed
  uint32_t request_ms = 30'000;     // 408; from the first byte of a request to its last
  /// Of one answer, written by the program and not yet taken by the network. One piece may be
  /// larger when nothing else waits; the next cuts the connection.
  size_t queued_bytes_max = size_t{1} << 20;
  uint32_t send_ms = 30'000;   // for 64 KiB of an answer, then the connection is cut
  uint32_t linger_ms = 1'000;  // for the client to take a last answer and close
};

}  // namespace lethe
