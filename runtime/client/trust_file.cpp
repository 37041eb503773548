#include "runtime/client/trust_file.hpp"

#include <capnp/message.h>

#include <algorithm>

#include "runtime/base/mapped_file.hpp"
#include "runtime/client/client_limits.hpp"
#include "runtime/config/origin_text.hpp"
#include "runtime/config/toml_mapper.hpp"
#include "runtime/log/words.hpp"
#include "runtime/token/token_limits.hpp"
#include "schemas/trust.capnp.h"

namespace lethe {

namespace {

namespace fs = std::filesystem;

std::string_view text_of(capnp::Text::Reader t) { return {t.begin(), t.size()}; }

/// Turns the message that TOML filled into what a client works with.
class trust_reader {
 public:
  trust_reader(const fs::path& file, schema::Trust::Reader from, toml_facts& facts)
      : file_(file), from_(from), facts_(facts) {}

  result<trust_file> read() {
    auto log = log_trust();
    trust_file made{
        .file = file_,
        .log = log ? *std::move(log) : nobody(),
        .relays = relays(),
        .issuer = issuer(),
        .issuer_name =
            name("issuer_name", text_of(from_.getIssuerName()), limits::token_issuer_bytes_max),
        .origin = name("origin", text_of(from_.getOrigin()), limits::token_origin_bytes_max),
        .evidence = evidence(),
        .authorities = path("authorities", text_of(from_.getAuthorities()), true),
        .wallet = path("wallet", text_of(from_.getWallet()), false),
        .account = path("account", text_of(from_.getAccount()), false),
        .policy = bounds()};
    if (facts_.problems.empty()) return made;
    return fail("{}", fmt::join(facts_.problems, "\n"));
  }

 private:
  template <class... Args>
  void wrong(const std::string& key, fmt::format_string<Args...> format, Args&&... args) {
    facts_.problems.push_back(fmt::format("{}:{}: {}: ", file_.string(), facts_.line_of(key), key) +
                              fmt::format(format, std::forward<Args>(args)...));
  }
  /// Stands where a key should, in what is never handed out.
  static note_trust nobody() {
    return {.log = *note_key::make("nobody", note_algorithm::ed25519, {})};
  }

  std::optional<note_trust> log_trust() {
    auto log = note_key::parse(text_of(from_.getLog()));
    if (!log) wrong("log", "{}", log.why().text);
    std::vector<note_key> witnesses;
    size_t i = 0;
    for (auto w : from_.getWitnesses()) {
      auto key = note_key::parse(text_of(w));
      if (key)
        witnesses.push_back(*std::move(key));
      else
        wrong(fmt::format("witnesses[{}]", i), "{}", key.why().text);
      ++i;
    }
    if (!log || witnesses.size() < i) return {};
    auto made = note_trust::make(*std::move(log), std::move(witnesses), from_.getQuorum());
    if (made) return *std::move(made);
    wrong("witnesses", "{}", made.why().text);
    return {};
  }

  std::vector<server_at> relays() {
    std::vector<server_at> made;
    for (auto r : from_.getRelays())
      made.push_back(server(fmt::format("relays[{}]", made.size()), text_of(r)));
    if (made.empty()) wrong("relays", "names none; a client reaches its gateway through one only");
    return made;
  }

  server_at server(const std::string& key, std::string_view url) {
    auto at = server_at::from_url(url);
    if (at) return *std::move(at);
    wrong(key, "{}", at.why().text);
    return {};
  }

  server_at issuer() {
    auto url = text_of(from_.getIssuer());
    if (is_open_way(url))
      wrong("issuer",
            "is plain http to another machine, and the account's secret is sent there; "
            "use https");
    return server("issuer", url);
  }

  std::string name(const char* key, std::string_view text, size_t bytes_max) {
    bool plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
    if (text.empty() || text.size() > bytes_max || !plain)
      wrong(key, "must be 1 to {} printable ASCII characters without blanks", bytes_max);
    return std::string(text);
  }

  std::vector<std::string> evidence() {
    std::vector<std::string> kinds;
    for (auto e : from_.getEvidence()) {
      std::string kind(text_of(e));
      if (!is_word(kind)) wrong(fmt::format("evidence[{}]", kinds.size()), "must be {}", word_form);
      kinds.push_back(std::move(kind));
    }
    if (kinds.empty())
      wrong("evidence", "names no kind; nodes without attested hardware are accepted as \"none\"");
    return kinds;
  }

  fs::path path(const char* key, std::string_view text, bool may_be_empty) {
    if (text.find('\0') != text.npos) wrong(key, "is no path");
    if (!text.empty()) return (file_.parent_path() / text).lexically_normal();
    if (!may_be_empty) wrong(key, "names no file");
    return {};
  }

  policy_bounds bounds() {
    auto p = from_.getPolicy();
    if (!is_word(text_of(p.getName()))) wrong("policy.name", "must be {}", word_form);
    return {.name = std::string(text_of(p.getName())),
            .candidates_max = p.getCandidatesMax(),
            .redraws_max = p.getRedrawsMax(),
            .nodes_min = p.getNodesMin(),
            .share_max_permille = p.getShareMaxPermille(),
            .roster_age_max_s = p.getRosterAgeMaxS(),
            .buyers_min = p.getBuyersMin(),
            .shape = shape_mode(p.getShape())};
  }

  const fs::path& file_;
  schema::Trust::Reader from_;
  toml_facts& facts_;
};

/// A TOML basic string.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (c < ' ' || c == 0x7f)
      out += fmt::format("\\u{:04x}", uint32_t(c));
    else
      out += c;
  }
  return out + '"';
}

std::string list_of(const std::vector<std::string>& texts) {
  if (texts.empty()) return "[]";
  std::string out = "[\n";
  for (const auto& t : texts) out += fmt::format("  {},\n", in_quotes(t));
  return out + "]";
}

}  // namespace

result<server_at> server_at::from_url(std::string_view url) {
  auto read = read_url(url);
  if (!read) return read.why();
  server_at at{std::move(read->first), std::move(read->second)};
  while (at.prefix.ends_with('/')) at.prefix.pop_back();
  return at;
}

bool trust_file::accepts(std::string_view kind) const {
  return std::ranges::find(evidence, kind) != evidence.end();
}

result<trust_file> trust_file::read(const fs::path& file) {
  auto text = read_text(file, limits::trust_file_bytes_max);
  if (!text) return text.why();
  return parse(*text, file);
}

result<trust_file> trust_file::parse(std::string_view toml, const fs::path& file) {
  if (toml.size() > limits::trust_file_bytes_max)
    return fail("{}: {} bytes; at most {} are read", file.string(), toml.size(),
                limits::trust_file_bytes_max);
  capnp::MallocMessageBuilder message;
  auto into = message.initRoot<schema::Trust>();
  auto facts = map_toml(toml, file.string(), into);
  if (!facts.problems.empty()) return fail("{}", fmt::join(facts.problems, "\n"));
  return trust_reader(file, into.asReader(), facts).read();
}

std::string trust_text::toml() const {
  std::vector<std::string> keys;
  for (const auto& w : witnesses) keys.push_back(w.text());
  auto line = [](const char* key, std::string_view text) {
    return fmt::format("{} = {}\n", key, in_quotes(text));
  };
  std::string out = line("log", log.text());
  out += fmt::format("witnesses = {}\nquorum = {}\n", list_of(keys), quorum);
  out += fmt::format("relays = {}\n", list_of(relays));
  out += line("origin", origin) + line("issuer", issuer) + line("issuer_name", issuer_name);
  if (!authorities.empty()) out += line("authorities", authorities);
  out += fmt::format("evidence = {}\n\n[policy]\n", list_of(evidence));
  out += line("name", policy.name);
  out += fmt::format(
      "candidates_max = {}\nredraws_max = {}\nnodes_min = {}\nshare_max_permille = {}\n"
      "roster_age_max_s = {}\nbuyers_min = {}\nshape = \"{}\"\n",
      policy.candidates_max, policy.redraws_max, policy.nodes_min, policy.share_max_permille,
      policy.roster_age_max_s, policy.buyers_min, name_of(policy.shape));
  return out;
}

}  // namespace lethe
