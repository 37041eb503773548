#include "runtime/client/purchase.hpp"

#include <charconv>

#include "runtime/client/client_limits.hpp"
#include "runtime/store/key_file.hpp"
#include "runtime/token/retry_after.hpp"

namespace lethe {

namespace {

constexpr std::string_view batch_path = "/token-request-batch";

/// The first line of the account's file, as a header.
result<secret_bytes> bearer_of(const std::filesystem::path& account) {
  auto file = read_key(account, {1, limits::account_secret_bytes_max});
  if (!file) return file.why();
  auto line = file->text().substr(0, file->text().find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return fail("{}: its first line is empty", account.string());
  constexpr std::string_view scheme = "Bearer ";
  secret_bytes header(scheme.size() + line.size());
  auto at = std::ranges::copy(as_bytes(scheme), header.bytes().begin()).out;
  std::ranges::copy(as_bytes(line), at);
  return header;
}

/// How long to wait, no finer than everybody is told.
uint64_t retry_s(const http_reply& head) {
  auto text = head.field("retry-after");
  uint64_t s = 0;
  std::from_chars(text.data(), text.data() + text.size(), s);
  return coarse_retry_s(s);
}

call_end refused_by_issuer(const http_reply& head) {
  switch (head.status) {
    case 401:
      return fault(call_fault::tokens, "issuer: it does not know this account, or no longer");
    case 403:
      return fault(call_fault::tokens,
                   "issuer: it sells other batches than the logged policy says");
    case 422:
      return fault(call_fault::tokens, "issuer: it signs under another key than the logged one");
    case 429:
      return fault(call_fault::tokens, "issuer: the account's quota is used up; again in {} s",
                   retry_s(head));
    default:
      return fault(call_fault::tokens, "issuer: it answers {}", head.status);
  }
}

call_result<http_whole> ask_issuer(http_client& client, const trust_file& trust,
                                   const std::vector<std::byte>& request) {
  auto bearer = bearer_of(trust.account);
  if (!bearer) return call_end{call_fault::here, bearer.why()};
  http_call call{.to = trust.issuer.origin,
                 .method = "POST",
                 .path = trust.issuer.prefix + std::string(batch_path),
                 .fields = {{"Authorization", std::string(bearer->text())},
                            {"Content-Type", std::string(token_batch_request_media)}},
                 .body = std::string(as_text(request))};
  auto got = ask_whole(client, std::move(call));
  if (!got) return fault(call_fault::tokens, "issuer: it is not reached: {}", got.why().text);
  if (got->head.status != 200 && got->head.status != 206) return refused_by_issuer(got->head);
  if (got->head.field("content-type") != token_batch_response_media)
    return fault(call_fault::tokens, "issuer: its answer is no {}", token_batch_response_media);
  return *std::move(got);
}

}  // namespace

call_result<size_t> buy_batch(http_client& client, const trust_file& trust,
                              const cluster_state& state, wallet& into, uint64_t now_s) {
  const size_t batch = state.policy.token_batch;
  const auto has = into.count();
  if (has.tokens + has.open + batch > limits::wallet_tokens_max)
    return fault(call_fault::here, "{}: it has {} tokens; no room for {} more",
                 trust.wallet.string(), has.tokens + has.open, batch);
  auto key = state.token_key_at(now_s);
  if (!key) return call_end{call_fault::trust, key.why()};
  auto purchase = token_purchase::make(*key, state.challenge.digest(), batch);
  if (!purchase) return call_end{call_fault::trust, purchase.why()};
  auto answer = ask_issuer(client, trust, purchase->request());
  if (!answer) return answer.end;
  auto bought = purchase->finish(*key, as_bytes(answer->body));
  wipe(answer->body.data(), answer->body.size());
  if (!bought) return fault(call_fault::tokens, "issuer: {}", bought.why().text);
  if (!bought->tokens.empty())
    if (auto ok = into.add(bought->tokens); !ok) return call_end{call_fault::here, ok.why()};
  if (bought->wrong > 0)
    return fault(call_fault::trust,
                 "issuer: {} of {} signatures are not of the logged key; tell others",
                 bought->wrong, batch);
  if (bought->tokens.empty()) return fault(call_fault::tokens, "issuer: it signed nothing");
  return bought->tokens.size();
}

}  // namespace lethe
