#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/config.capnp.h"

namespace lethe {

/// What the policy's table says to a file.
struct policy_view {
  struct problem {
    std::string key, text;
  };
  std::vector<problem> problems;   // what the profile refuses, and which key asks for it
  std::vector<std::string> notes;  // what was asked for by name, and how it is had
};

/// Everything that the file asks for, by `optimizations` and by keys of its own, held against
/// runtime/policy.
policy_view check_policy(schema::Config::Reader config);

/// Whether `optimizations` names it, or another name of it: how what is had `by_name` is turned on.
bool wants(capnp::List<capnp::Text>::Reader optimizations, std::string_view name);

/// The rows that a key of the file asks for.
struct policy_key {
  std::string_view key, optimization;
  bool (*asks)(schema::Config::Reader);
};
std::span<const policy_key> policy_keys();

}  // namespace lethe
