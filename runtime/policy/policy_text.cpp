#include "runtime/policy/policy_text.hpp"

namespace lethe::policy {

namespace {

constexpr std::string_view head = R"(# What may run under which profile

`lethe config policy --markdown` writes this page from the table in `runtime/policy`, which decides:
`lethe config check` and `lethe up` refuse what the file's profile refuses, by
`optimizations = ["NAME"]` or by a key of its own, and say which promise it would break. A test
holds this page against the table.

- **allowed**: it is there.
- **guarded**: it is there, with a safeguard that can't be taken off.
- **refused**: it would break a promise.
- **not built**: it could be allowed, but this build has none of it.

Promises: S stateless computation, E enforceable guarantees, T non-targetability, P no privileged
runtime access, V verifiable transparency ([DESIGN.md](DESIGN.md), section 2). *Breaks* says which
of them would fall if it came without a safeguard. What is always on needs no name in a file; naming
it changes nothing.

| optimization | what it does | breaks | strict | session | lab | how | safeguard | instead | from |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
)";

std::string how_text(const optimization& o) {
  if (o.how == had::by_key) return fmt::format("`{}`", o.key);
  if (o.how == had::by_name) return fmt::format("`optimizations = [\"{}\"]`", o.name);
  for (auto v : {o.strict, o.session, o.lab})
    if (v == verdict::allowed || v == verdict::guarded) return "always on";
  return "";
}

std::string breaks_text(const optimization& o) {
  return o.breaks == 0 ? "" : fmt::format("{}: {}", letters(o.breaks), o.by);
}

/// "a, b"
std::string also_text(const optimization& o) {
  std::string all;
  for (char c : o.also) all += c == ' ' ? std::string(", ") : std::string(1, c);
  return all;
}

std::string line(std::string_view what, std::string_view text) {
  return text.empty() ? "" : fmt::format("  {:<10} {}\n", what, text);
}

}  // namespace

std::string table_text() {
  std::string out =
      fmt::format("{:<26}{:<8}{:<11}{:<11}{}\n", "", "breaks", "strict", "session", "lab");
  for (const auto& o : table())
    out += fmt::format("{:<26}{:<8}{:<11}{:<11}{}\n", o.name, letters(o.breaks), word_of(o.strict),
                       word_of(o.session), word_of(o.lab));
  return out +
         "\nS stateless computation, E enforceable guarantees, T non-targetability,\n"
         "P no privileged runtime access, V verifiable transparency.\n"
         "`lethe config policy NAME` says what one is and what to use instead.\n";
}

std::string row_text(const optimization& o) {
  return fmt::format("{}: {}\n", o.name, o.what) + line("also", also_text(o)) +
         line("from", o.systems) +
         (o.breaks ? line("breaks", fmt::format("{}: {}", promises_text(o.breaks), o.by)) : "") +
         line("strict", word_of(o.strict)) + line("session", word_of(o.session)) +
         line("lab", word_of(o.lab)) + line("safeguard", o.safeguard) + line("how", how_text(o)) +
         line("instead", o.instead);
}

std::string table_markdown() {
  std::string out(head);
  for (const auto& o : table())
    out += fmt::format("| {}{} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", o.name,
                       o.also.empty() ? "" : fmt::format(" ({})", also_text(o)), o.what,
                       breaks_text(o), word_of(o.strict), word_of(o.session), word_of(o.lab),
                       how_text(o), o.safeguard, o.instead, o.systems);
  return out;
}

}  // namespace lethe::policy
