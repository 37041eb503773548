#include "runtime/issuer/token_till.hpp"

#include <algorithm>

#include "runtime/token/retry_after.hpp"
#include "runtime/token/token_names.hpp"

namespace lethe {

namespace {

constexpr size_t change_bytes = private_token::wire_bytes + token_request::wire_bytes;

till_answer refused(int status, std::string why) {
  return {.status = status, .why = std::move(why)};
}

till_answer broken(const error& why) {
  return {.status = 500, .why = "the issuer has a fault; ask later", .fault = why.text};
}

till_answer bad_form() {
  return refused(422, "not a request of this kind, or not under the current key");
}

/// What a client gets whose request was paid, or whose claim was recorded.
till_answer handed_out(issuer_answer made, std::string_view media) {
  if (made.status != 200) return broken(error{std::move(made.why)});
  return {.media = media, .body = std::move(made.body)};
}

bool signs_all(const token_key* key, std::span<const token_request> requests) {
  return key && std::ranges::all_of(requests, [key](const token_request& r) {
           return r.short_key_id == key->short_id() && key->rsa().holds(r.blinded);
         });
}

}  // namespace

token_till::token_till(till_rules rules, account_store& accounts, change_store& changes)
    : rules_(rules), accounts_(accounts), changes_(changes) {}

token_till::buyer token_till::know(std::string_view secret) {
  auto who = accounts_.authenticate(secret);
  if (!who) return {.refused = broken(who.why())};
  if (!*who || (*who)->revoked) return {.refused = refused(401, "no account has this secret")};
  return {.name = std::move((*who)->name)};
}

std::optional<till_answer> token_till::pay(const buyer& who,
                                           std::span<const token_request> requests,
                                           const token_issuer& keys, uint64_t now_s) {
  if (!signs_all(keys.current(now_s), requests)) return bad_form();
  const auto epoch = uint32_t(now_s / rules_.epoch_s);
  auto charged = accounts_.charge(who.name, uint32_t(requests.size()), epoch);
  if (!charged) return broken(charged.why());
  if (*charged == charge_answer::no_account) return refused(401, "no account has this secret");
  if (*charged == charge_answer::charged) return {};
  auto full = refused(429, "the account's quota of this token epoch is used up");
  full.retry_after_s = coarse_retry_s((uint64_t{epoch} + 1) * rules_.epoch_s - now_s);
  return full;
}

till_answer token_till::sell_one(std::string_view secret, bytes_view body, const token_issuer& keys,
                                 uint64_t now_s) {
  auto who = know(secret);
  if (who.refused) return *std::move(who.refused);
  auto request = token_request::from_bytes(body);
  if (!request) return bad_form();
  if (auto no = pay(who, {&*request, 1}, keys, now_s)) return *std::move(no);
  auto answer = handed_out(keys.answer(body, now_s), token_response_media);
  answer.sold = 1;
  return answer;
}

till_answer token_till::sell_batch(std::string_view secret, bytes_view body,
                                   const token_issuer& keys, uint64_t now_s) {
  auto who = know(secret);
  if (who.refused) return *std::move(who.refused);
  auto requests = read_batch_request(body);
  if (!requests) return bad_form();
  if (requests->size() != rules_.batch)
    return refused(403, fmt::format("a purchase has {} tokens, for everyone", rules_.batch));
  if (auto no = pay(who, *requests, keys, now_s)) return *std::move(no);
  auto answer = handed_out(keys.answer_batch(body, now_s), token_batch_response_media);
  answer.sold = rules_.batch;
  return answer;
}

till_answer token_till::change(bytes_view body, const token_issuer& keys, uint64_t now_s) {
  if (body.size() != change_bytes) return bad_form();
  const auto spent = body.first(private_token::wire_bytes);
  const auto request = body.subspan(private_token::wire_bytes);
  auto token = private_token::from_bytes(spent);
  if (!token) return bad_form();
  const auto* key = keys.redeemable(token->key_id, now_s);
  if (!key || !verify_token(*token, *key, token->challenge_digest))
    return refused(403, "that is no token which can be spent now");
  auto claim = keys.claim_change(spent, request, token->challenge_digest, now_s);
  if (!claim) return bad_form();
  auto recorded = changes_.record({claim->key_id, claim->nonce}, claim->request_digest);
  if (!recorded) return broken(recorded.why());
  if (*recorded == change_record::refused)
    return refused(403, "the token was changed for another request");
  auto answer = handed_out(keys.sign(*claim, now_s), token_response_media);
  answer.changed = *recorded == change_record::fresh;
  return answer;
}

}  // namespace lethe
