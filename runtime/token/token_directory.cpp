#include "runtime/token/token_directory.hpp"

#include <simdjson.h>

#include <algorithm>

#include "runtime/json/json_text.hpp"
#include "runtime/token/base64url.hpp"
#include "runtime/token/token_limits.hpp"

namespace lethe {

namespace {

namespace dom = simdjson::dom;

constexpr std::string_view not_before_name = "not-before", buyers_name = "lethe-buyers";

/// Nothing if it is not there; an error if it is there twice.
result<std::optional<dom::element>> member(dom::object of, std::string_view name) {
  std::optional<dom::element> found;
  for (auto [key, value] : of) {
    if (key != name) continue;
    if (found) return fail("token directory: \"{}\" is there twice", name);
    found = value;
  }
  return found;
}

error not_there(std::string_view name) {
  return fail("token directory: \"{}\" is not there, or of another kind", name);
}

template <class Value>
result<Value> needed(dom::object of, std::string_view name) {
  auto found = member(of, name);
  if (!found) return found.why();
  Value value;
  if (!*found || (*found)->get(value) != simdjson::SUCCESS) return not_there(name);
  return value;
}

/// Nothing if it is not there.
result<std::optional<uint64_t>> number(dom::object of, std::string_view name) {
  auto found = member(of, name);
  if (!found) return found.why();
  if (!*found) return std::optional<uint64_t>{};
  uint64_t value = 0;
  if ((*found)->get(value) != simdjson::SUCCESS) return not_there(name);
  return std::optional(value);
}

bool is_uri_text(std::string_view uri) {
  return !uri.empty() && uri.size() <= limits::token_uri_bytes_max &&
         std::ranges::all_of(uri, [](char c) { return c > ' ' && c < 0x7f; });
}

/// Nothing for a key of another type.
result<std::optional<published_key>> read_key(dom::element from) {
  dom::object object;
  if (from.get(object) != simdjson::SUCCESS) return not_there("token-keys");
  auto type = needed<uint64_t>(object, "token-type");
  if (!type) return type.why();
  if (*type != token_type_blind_rsa) return std::optional<published_key>{};
  auto text = needed<std::string_view>(object, "token-key");
  if (!text) return text.why();
  auto bytes = read_base64url(*text);
  if (!bytes) return fail("token directory: a token-key is no base64url");
  auto spki = read_spki(*bytes);
  if (!spki) return spki.why();
  auto since = number(object, not_before_name);
  if (!since) return since.why();
  auto buyers = number(object, buyers_name);
  if (!buyers) return buyers.why();
  return std::optional(published_key{.key = *spki, .not_before_s = *since, .buyers = *buyers});
}

result<void> add_key(dom::element from, token_directory& to) {
  auto key = read_key(from);
  if (!key) return key.why();
  if (!*key) return {};
  if (std::ranges::find(to.keys, (*key)->key, &published_key::key) != to.keys.end())
    return fail("token directory: a key is there twice");
  to.keys.push_back(**key);
  return {};
}

}  // namespace

const published_key* token_directory::usable(uint64_t now_s) const {
  auto found = std::ranges::find_if(
      keys, [now_s](const published_key& k) { return k.not_before_s.value_or(0) <= now_s; });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<published_key> token_directory::over(uint64_t now_s) const {
  const auto* current = usable(now_s);
  std::vector<published_key> before;
  for (const auto& k : keys)
    if (current && k.not_before_s.value_or(0) < current->not_before_s.value_or(0))
      before.push_back(k);
  return before;
}

std::string write_directory(const token_directory& directory) {
  check(is_uri_text(directory.issuer_request_uri));
  json_text out(std::pmr::get_default_resource());
  out.open('{').key("issuer-request-uri").text(directory.issuer_request_uri);
  out.key("token-keys").open('[');
  for (const auto& k : directory.keys) {
    std::string key(base64url_chars(k.key.size()), '\0');
    write_base64url(k.key, key);
    out.open('{').key("token-type").number(uint64_t{token_type_blind_rsa});
    out.key("token-key").text(key);
    if (k.not_before_s) out.key(not_before_name).number(*k.not_before_s);
    if (k.buyers) out.key(buyers_name).number(*k.buyers);
    out.close('}');
  }
  out.close(']').close('}');
  return std::string(out.str());
}

result<token_directory> read_directory(std::string_view json) {
  if (json.size() > limits::token_directory_bytes_max)
    return fail("token directory: {} bytes; at most {}", json.size(),
                limits::token_directory_bytes_max);
  dom::parser parser;
  dom::object root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS)
    return fail("token directory: not an object in JSON");
  auto uri = needed<std::string_view>(root, "issuer-request-uri");
  if (!uri) return uri.why();
  if (!is_uri_text(*uri)) return fail("token directory: issuer-request-uri is not a URI");
  auto keys = needed<dom::array>(root, "token-keys");
  if (!keys) return keys.why();
  token_directory read{.issuer_request_uri = std::string(*uri)};
  size_t seen = 0;
  for (dom::element key : *keys) {
    if (++seen > limits::token_directory_keys_max)
      return fail("token directory: more than {} keys", limits::token_directory_keys_max);
    if (auto ok = add_key(key, read); !ok) return ok.why();
  }
  return read;
}

}  // namespace lethe
