#pragma once

#include <kj/compat/tls.h>

#include "runtime/base/result.hpp"
#include "runtime/http/http_identity.hpp"

namespace lethe {

/// TLS 1.2 at least, on either side.
result<kj::Own<kj::TlsContext>> serving_tls(const http_identity& identity, kj::Timer& timer,
                                            uint32_t handshake_ms);
result<kj::Own<kj::TlsContext>> asking_tls(const http_trust& trust);

}  // namespace lethe
