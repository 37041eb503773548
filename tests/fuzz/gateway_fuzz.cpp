#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/gateway/inner_request.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/token/base64url.hpp"

namespace {

using namespace lethe;

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

std::pmr::memory_resource* heap() { return std::pmr::new_delete_resource(); }

/// What is taken is what stands there, and whole. False: it is not taken.
bool any_request(std::string_view whole) {
  auto read = read_request(whole, heap());
  if (!read) return false;
  const auto wants = read_inner(*read);
  const auto value = [&](std::string_view name) {
    auto at = std::ranges::find(read->fields, name, &bhttp_field::name);
    expect(at != read->fields.end());
    return at->value;
  };
  if (auto* look = std::get_if<inner_look>(&wants)) {
    expect(read->method == "GET" && read->path == "/" + std::string(look->path));
  } else if (auto* s = std::get_if<inner_sealed>(&wants)) {
    expect(read->method == "POST" && read->path == sealed_names::sealed_path);
    expect(as_text(s->message) == read->content());
    auto token = read_authorization(value("authorization"));
    expect(token && token->to_bytes() == s->token.to_bytes());
    auto change = read_base64url(value(sealed_names::change_field));
    expect(change && std::ranges::equal(*change, s->change.to_bytes()));
  } else if (auto* c = std::get_if<inner_claim>(&wants)) {
    expect(read->method == "POST" && read->path == sealed_names::change_path);
    expect(as_text(c->bytes) == read->content());
    const auto token = c->token.to_bytes();
    const auto change = c->change.to_bytes();
    expect(std::ranges::equal(c->bytes.first(token.size()), token));
    expect(std::ranges::equal(c->bytes.subspan(token.size()), change));
  } else {
    const auto& bad = std::get<inner_problem>(wants);
    expect(bad.status >= 400 && bad.status < 500 && *bad.title);
    return false;
  }
  return true;
}

std::string request_of(std::string_view path, std::span<const bhttp_field> fields,
                       std::string_view content) {
  std::pmr::string out(heap());
  bhttp_request what{
      .method = "POST", .authority = "gateway", .path = path, .fields = fields, .content = content};
  return write_request(what, out) ? std::string(out) : std::string();
}

/// A client's request, of the right form but for what the input puts in one place.
void edited_request(uint8_t where, std::string_view given) {
  private_token token;
  token_request change;
  const auto paid = write_authorization(token);
  std::string authorization(paid.text()), asked = to_base64url(change.to_bytes());
  std::string claim(as_text(token.to_bytes()));
  claim += as_text(change.to_bytes());
  std::string* const parts[] = {&authorization, &asked, &claim};
  std::string& part = *parts[where % 3];
  const size_t at = given.empty() ? 0 : size_t(uint8_t(given[0])) * 3 % (part.size() + 1);
  if (!given.empty()) part.replace(at, given.size() - 1, given.substr(1));
  const bhttp_field sealed[] = {{"content-type", sealed_names::request},
                                {"authorization", authorization},
                                {sealed_names::change_field, asked}};
  const bool taken = any_request(request_of(sealed_names::sealed_path, sealed, "message"));
  expect(taken || !given.empty());
  const bhttp_field type{"content-type", sealed_names::claim};
  expect(any_request(request_of(sealed_names::change_path, {&type, 1}, claim)) || !given.empty());
}

}  // namespace

/// What a gateway finds inside the outer layer: anything, and requests with a part that is wrong.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  data[0] % 2 ? edited_request(data[0] / 2, rest) : void(any_request(rest));
  return 0;
}
