#include "runtime/policy/policy.hpp"

#include <algorithm>
#include <vector>

#include "runtime/base/similar.hpp"
#include "runtime/policy/optimizations_table.hpp"

namespace lethe::policy {

namespace {

constexpr schema::Profile profiles[] = {schema::Profile::STRICT, schema::Profile::SESSION,
                                        schema::Profile::LAB};

/// A row that refuses says what it would break and what to use instead, and so on.
constexpr bool is_whole(const optimization& o) {
  if (o.name.empty() || o.what.empty() || (o.breaks == 0) != o.by.empty()) return false;
  if ((o.how == had::by_key) != !o.key.empty()) return false;
  for (auto p : profiles) {
    auto v = o.in(p);
    if (v == verdict::refused && o.breaks == 0) return false;
    if ((v == verdict::refused || v == verdict::not_built) && o.instead.empty()) return false;
    if (v == verdict::guarded && o.safeguard.empty()) return false;
  }
  // What a profile that promises less refuses, one that promises more does.
  return (o.session != verdict::refused || o.strict == verdict::refused) &&
         o.lab != verdict::refused;
}

constexpr bool are_whole() { return std::ranges::all_of(optimizations, is_whole); }
static_assert(are_whole());

struct named_promise {
  promise which;
  char letter;
  std::string_view words;
};
constexpr named_promise promises[] = {
    {stateless, 'S', "stateless computation (S)"},
    {enforceable, 'E', "enforceable guarantees (E)"},
    {untargeted, 'T', "non-targetability (T)"},
    {unwatched, 'P', "no privileged runtime access (P)"},
    {verifiable, 'V', "verifiable transparency (V)"},
};

bool is_among(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

std::span<const optimization> table() { return optimizations; }

const optimization* find(std::string_view name) {
  auto found = std::ranges::find_if(optimizations, [name](const optimization& o) {
    return o.name == name || is_among(o.also, name);
  });
  return found == std::end(optimizations) || name.empty() ? nullptr : found;
}

result<const optimization*> look_up(std::string_view name) {
  if (auto* found = find(name)) return found;
  std::vector<std::string> known;
  for (const auto& o : optimizations) known.emplace_back(o.name);
  if (auto near = most_similar(name, known))
    return fail("there is no optimization \"{}\"; did you mean {}?", name, *near);
  return fail("there is no optimization \"{}\"; `lethe config policy` lists them", name);
}

result<const optimization*> check(schema::Profile profile, std::string_view name) {
  auto found = look_up(name);
  if (!found) return found;
  const auto& o = **found;
  switch (o.in(profile)) {
    case verdict::refused:
      return fail("{} is refused by profile \"{}\": it would break {}, since {}; use instead: {}",
                  o.name, name_of(profile), promises_text(o.breaks), o.by, o.instead);
    case verdict::not_built:
      return fail("{} is not built; use instead: {}", o.name, o.instead);
    case verdict::allowed:
    case verdict::guarded:
      break;
  }
  return found;
}

bool takes(schema::Profile profile, std::string_view name) { return bool(check(profile, name)); }

std::string_view name_of(schema::Profile profile) {
  switch (profile) {
    case schema::Profile::SESSION:
      return "session";
    case schema::Profile::LAB:
      return "lab";
    case schema::Profile::STRICT:
      break;
  }
  return "strict";
}

std::string promises_text(uint8_t breaks) {
  std::vector<std::string_view> words;
  for (const auto& p : promises)
    if (breaks & p.which) words.push_back(p.words);
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < words.size() ? ", " : " and ", words[i]);
  return text;
}

std::string letters(uint8_t breaks) {
  std::string text;
  for (const auto& p : promises)
    if (breaks & p.which) text += p.letter;
  return text;
}

std::string_view word_of(verdict v) {
  switch (v) {
    case verdict::allowed:
      return "allowed";
    case verdict::guarded:
      return "guarded";
    case verdict::refused:
      return "refused";
    case verdict::not_built:
      break;
  }
  return "not built";
}

}  // namespace lethe::policy
