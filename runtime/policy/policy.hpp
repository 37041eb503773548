#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"
#include "schemas/config.capnp.h"

namespace lethe::policy {

/// What a profile says to an optimization.
enum class verdict : uint8_t {
  allowed,
  guarded,    // with the row's safeguard, which can't be taken off
  refused,    // it would break a promise
  not_built,  // it could be allowed, but this build has none
};

/// The promises of docs/DESIGN.md, section 2; a row's cost is the sum of those that it breaks.
enum promise : uint8_t {
  stateless = 1,
  enforceable = 2,
  untargeted = 4,
  unwatched = 8,
  verifiable = 16,
};

/// How an optimization is had where the profile lets it.
enum class had : uint8_t {
  always,   // it is on, whatever a file says
  by_name,  // `optimizations` of the file turns it on
  by_key,   // a key of its own asks for it
};

/// A row of the table.
struct optimization {
  std::string_view name;
  std::string_view also;  // other names for the same, with blanks between
  std::string_view what;
  std::string_view systems;  // of TAXONOMY.md, with commas between; none: not from there
  uint8_t breaks = 0;        // promises, if it came unguarded
  std::string_view by;       // what it would give away
  verdict strict, session, lab;
  std::string_view safeguard;
  std::string_view instead;  // where it is refused or not built
  had how = had::always;
  std::string_view key;  // of `by_key`, as a file has it

  constexpr verdict in(schema::Profile p) const {
    return p == schema::Profile::LAB ? lab : p == schema::Profile::SESSION ? session : strict;
  }
};

/// All of them, related ones together.
std::span<const optimization> table();

/// By its name or another one for it.
const optimization* find(std::string_view name);
/// As `find`; an error says what was likely meant.
result<const optimization*> look_up(std::string_view name);

/// Whether a profile takes it. An error says which promise it would break and what to use instead,
/// or that it isn't built.
result<const optimization*> check(schema::Profile profile, std::string_view name);

/// Whether `check` finds nothing against a row's name.
bool takes(schema::Profile profile, std::string_view name);

/// "strict"
std::string_view name_of(schema::Profile profile);
/// "stateless computation (S) and non-targetability (T)"
std::string promises_text(uint8_t breaks);
/// "ST"
std::string letters(uint8_t breaks);
/// "allowed", "not built"...
std::string_view word_of(verdict v);

}  // namespace lethe::policy
