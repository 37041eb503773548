#pragma once

#include <cstdint>
#include <span>

/// Facts of the Unicode Character Database; unicode_tables.cpp is made by unicode_tables.awk.
namespace lethe::unicode {

/// Full (recursive) decomposition of one code point: `count` entries of `decomposed` from `begin`.
struct decomposition {
  uint32_t code;
  uint16_t begin;
  uint8_t count;
  bool compatible;  // only for NFKC and NFKD
};
struct pair_composition {
  uint32_t first, second, composed;
};
struct combining_range {
  uint32_t first, last;
  uint8_t combining_class;
};
// Every other category (symbols, separators, unassigned) is `none`.
enum class category : uint8_t {
  none,
  other,            // Cc Cf Co Cs
  letter,           // L
  mark_nonspacing,  // Mn
  mark,             // Mc Me
  number,           // Nd Nl
  number_other,     // No
  connector,        // Pc
  punctuation,      // the rest of P
};
struct category_range {
  uint32_t first, last;
  category is;
};
struct lower_case {
  uint32_t code, lower;
};

// Each sorted by its first field (compositions by both).
extern const std::span<const decomposition> canonical;
extern const std::span<const decomposition> compatible;
extern const std::span<const uint32_t> decomposed;
extern const std::span<const pair_composition> compositions;
extern const std::span<const combining_range> combining;
extern const std::span<const category_range> categories;
extern const std::span<const lower_case> lower_cases;

}  // namespace lethe::unicode
