#pragma once

#include "runtime/crypto/hkdf.hpp"

namespace lethe {

/// LabeledExtract and LabeledExpand of RFC 9180, section 4, for one suite_id. `info` may come in
/// two parts.
struct labeled_hkdf {
  bytes_view suite_id;

  key_bytes extract(bytes_view salt, std::string_view label, bytes_view input) const {
    return hkdf_extract(salt, {as_bytes("HPKE-v1"), suite_id, as_bytes(label), input});
  }
  void expand(bytes_view prk, std::string_view label, bytes_view info, bytes_view more_info,
              std::span<std::byte> out) const {
    const std::array length{std::byte(uint8_t(out.size() >> 8)), std::byte(uint8_t(out.size()))};
    hkdf_expand(prk, {length, as_bytes("HPKE-v1"), suite_id, as_bytes(label), info, more_info},
                out);
  }
  key_bytes expand(bytes_view prk, std::string_view label, bytes_view info, bytes_view more_info,
                   size_t bytes) const {
    key_bytes out(bytes);
    expand(prk, label, info, more_info, out.bytes());
    return out;
  }
};

}  // namespace lethe
