#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lethe {

/// "512 MiB", "1.5GiB", "4096": bytes. Units are KiB to TiB and kB to TB; nothing if it is none.
std::optional<uint64_t> parse_bytes(std::string_view text);

/// 536870912 as "512.0 MiB".
std::string bytes_text(uint64_t bytes);

}  // namespace lethe
