#include "runtime/config/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <span>

namespace lethe {

namespace {

struct unit {
  const char* name;
  double bytes;
};
constexpr unit units[] = {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}};
constexpr unit decimal[] = {{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}};

std::optional<double> bytes_of(std::string_view name) {
  for (std::span<const unit> known : {std::span(units), std::span(decimal)})
    for (const auto& u : known)
      if (name == u.name) return u.bytes;
  return {};
}

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  double value = 0;
  auto [rest, wrong] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (wrong != std::errc() || !(value >= 0 && value <= 1e15)) return {};
  std::string_view unit_name = text.substr(size_t(rest - text.data()));
  unit_name.remove_prefix(std::min(unit_name.find_first_not_of(' '), unit_name.size()));
  if (unit_name.empty()) return uint64_t(value);
  auto each = bytes_of(unit_name);
  if (!each || value * *each >= 0x1p63) return {};
  return uint64_t(value * *each);
}

std::string bytes_text(uint64_t bytes) {
  for (const auto& u : units)
    if (double(bytes) >= u.bytes) return fmt::format("{:.1f} {}", double(bytes) / u.bytes, u.name);
  return fmt::format("{} bytes", bytes);
}

}  // namespace lethe
