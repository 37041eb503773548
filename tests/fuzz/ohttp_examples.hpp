#pragma once

#include <charconv>

#include "runtime/crypto/ohttp_request.hpp"

/// The small exchanges of the corpora, and what opens them.
namespace lethe {

struct ohttp_example {
  uint16_t aead;
  bool chunked;
  uint8_t key_id;
  std::string_view gateway_private, enc, answer_secret;

  ohttp_form form() const { return chunked ? ohttp_form::chunked : ohttp_form::whole; }
  hpke_suite suite() const { return {.aead = aead}; }
};

inline constexpr ohttp_example ohttp_examples[] = {
    {1, false, 65, "708a2408943121c047aa18a60ae9f8c8a3787c5d2da267d03d2d1cd482d1f08d",
     "fd9e15463abb4e2fb546bd02520fb2e009f1d7f604d2cf8fc27c0b29089bd131",
     "f90a659724b68e83c49e6bad15d41965"},
    {1, true, 65, "7f92aac889ebffd69e5c9bf50785726f9bbcbc4fdd241b05707b27eee9787dfc",
     "3f76ab69c11a191a97c1088efa762c535a0e86f35e386a76135e4679866d9008",
     "bd2a2690dbdacd51413e4a390d6e2106"},
    {2, false, 66, "7727b7f867b479675cc96164ae647ca11626352ea574878e0a2a4024a9ce0f22",
     "de470e6693c4c850baa1ea61049c0ba13e7e7adc4d8e066aad44317bd5f2d921",
     "c16cacb1d368117a132ef480199f35f16f5ecda30f26e2514fd8172873dfc752"},
    {2, true, 66, "9d19784e49a5663f6cf259486310fabdf88ed51b3cde210b82ed2a93a7d2d6c4",
     "bbf8c035f46f50c7d9a2373d941c41c83c70272311d8c8b77c0217234de23728",
     "352028f557a11a943699026f45c82033134aa32c9dd04790e59cf2c2d3694925"},
    {3, false, 67, "a81b48d83c185706200116dc1fde118e52a7b5249e134c96cdaf3bf4294d0ff8",
     "be6f0528d8e5b71b4dcade1a73f25c4c8a18cec125e57fd675d3321974263e09",
     "30164f289dd620179cd514e31ac44ac7e95bedb013cee4d352f40065f6881e0a"},
    {3, true, 67, "01de4192f1e5545aa68d2a91ab52714a0e74a6722c30e1d421a6a95dd4646f55",
     "5e4346856e13b0612700bcbf43c2a6395d72c0b1c5e62b940b884e8fb24f500c",
     "0aed49386011d30c9b8e9d7da74e4286b6c6e24fe6599c4cdebc77bc97adeeb3"},
    // RFC 9458, appendix A
    {1, false, 1, "3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a",
     "4b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472",
     "62d87a6ba569ee81014c2641f52bea36"},
    // the example of draft-ietf-ohai-chunked-ohttp
    {1, true, 1, "1c190d72acdbe4dbc69e680503bb781a932c70a12c8f3754434c67d8640d8698",
     "8811eb457e100811c40a0aa71340a1b81d804bb986f736f2f566a7199761a032",
     "1d4484834ae36102a6ac42a5523454d9"},
};

inline std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> out(hex.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    uint8_t value = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, value, 16);
    out[i] = std::byte(value);
  }
  return out;
}

/// The input: which example, how large the pieces are, and the content.
struct ohttp_input {
  ohttp_input(const uint8_t* data, size_t size)
      : of(ohttp_examples[size > 0 ? data[0] % std::size(ohttp_examples) : 0]),
        piece(size > 1 ? 1 + data[1] : 1) {
    if (size > 2) content = {reinterpret_cast<const std::byte*>(data) + 2, size - 2};
  }
  const ohttp_example& of;
  size_t piece;
  bytes_view content;
};

/// Pushes all, `piece` bytes at a time; false after the first error.
bool push_all(auto& opener, bytes_view content, size_t piece, std::pmr::string& out) {
  while (!content.empty()) {
    bytes_view part = content.first(std::min(piece, content.size()));
    content = content.subspan(part.size());
    if (!opener.push(part, out)) return false;
  }
  return true;
}

inline void expect(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace lethe
