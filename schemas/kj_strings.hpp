#pragma once

#include <kj/string.h>

/// KJ 0.9 leaves these to C++20's reversed operators, which a type with its own operator!= does not
/// get any more (P2468). g++ 12 does not know that rule yet, clang does.
namespace kj {

inline bool operator==(const char* a, const StringPtr& b) { return StringPtr(a) == b; }
inline bool operator!=(const char* a, const StringPtr& b) { return !(StringPtr(a) == b); }

}  // namespace kj
