#include "runtime/gateway/inner_request.hpp"

#include <algorithm>

#include "runtime/gateway/sealed_names.hpp"
#include "runtime/token/base64url.hpp"

namespace lethe {

namespace {

constexpr size_t claim_bytes = private_token::wire_bytes + token_request::wire_bytes;

/// The one field of that name; nothing where it is absent or there twice.
std::optional<std::string_view> field_of(const bhttp_request_view& r, std::string_view name) {
  std::optional<std::string_view> found;
  for (const auto& f : r.fields) {
    if (f.name != name) continue;
    if (found) return {};
    found = f.value;
  }
  return found;
}

inner_request look(const bhttp_request_view& r) {
  if (r.method != "GET") return inner_problem{405, "use GET"};
  bool known = r.path == "/checkpoint" || r.path.starts_with("/tile/") ||
               r.path == sealed_names::roster_path || r.path.starts_with("/roster/") ||
               r.path == sealed_names::issuer_path;
  if (!known) return inner_problem{404, "there is no such path"};
  return inner_look{r.path.substr(1)};
}

std::optional<token_request> read_change(const bhttp_request_view& r) {
  auto text = field_of(r, sealed_names::change_field);
  if (!text) return {};
  auto bytes = read_base64url(*text);
  if (!bytes) return {};
  auto request = token_request::from_bytes(*bytes);
  if (!request) return {};
  return *request;
}

inner_request sealed(const bhttp_request_view& r) {
  if (r.method != "POST") return inner_problem{405, "use POST"};
  if (field_of(r, "content-type") != sealed_names::request)
    return inner_problem{415, "the content must be application/lethe-sealed-req"};
  auto given = field_of(r, "authorization");
  if (!given) return inner_problem{401, "a token is wanted"};
  auto token = read_authorization(*given);
  if (!token) return inner_problem{401, "the token has not its form"};
  auto change = read_change(r);
  if (!change) return inner_problem{400, "lethe-change must hold one token request"};
  return inner_sealed{*std::move(token), *change, as_bytes(r.content())};
}

inner_request claim(const bhttp_request_view& r) {
  if (r.method != "POST") return inner_problem{405, "use POST"};
  if (field_of(r, "content-type") != sealed_names::claim)
    return inner_problem{415, "the content must be application/lethe-change"};
  auto bytes = as_bytes(r.content());
  if (bytes.size() != claim_bytes) return inner_problem{400, "a claim has 613 bytes"};
  auto token = private_token::from_bytes(bytes.first(private_token::wire_bytes));
  auto request = token_request::from_bytes(bytes.subspan(private_token::wire_bytes));
  if (!token || !request) return inner_problem{400, "the claim has not its form"};
  return inner_claim{*std::move(token), *request, bytes};
}

}  // namespace

inner_request read_inner(const bhttp_request_view& r) {
  if (r.path == sealed_names::sealed_path) return sealed(r);
  if (r.path == sealed_names::change_path) return claim(r);
  return look(r);
}

}  // namespace lethe
