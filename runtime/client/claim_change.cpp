#include "runtime/client/client_limits.hpp"
#include "runtime/client/private_call.hpp"
#include "runtime/gateway/sealed_names.hpp"

namespace lethe {

namespace {

/// token ‖ TokenRequest
secret_bytes claim_of(const token_offer& spent) {
  secret_bytes claim(private_token::wire_bytes + token_request::wire_bytes);
  auto at = std::ranges::copy(spent.token.to_bytes(), claim.bytes().begin()).out;
  std::ranges::copy(spent.change.to_bytes(), at);
  return claim;
}

}  // namespace

call_end claim_change(const call_parts& with, const hash32& nonce, std::stop_token stop) {
  auto spent = with.tokens.offer_again(nonce);
  if (!spent) return {call_fault::tokens, spent.why()};
  auto state = with.view.at(with.now_s(), stop);
  if (!state) return state.end;
  const secret_bytes claim = claim_of(*spent);
  const bhttp_field type{"content-type", sealed_names::claim};
  auto got = with.channel.ask_whole((*state)->gateway_key,
                                    {"POST", sealed_names::change_path, {&type, 1}, claim.text()},
                                    limits::problem_bytes_max, stop);
  if (got.end.fault == call_fault::stale_key) {  // as good as not asked
    auto anew = with.view.refresh(with.now_s(), stop);
    return anew ? fault(call_fault::busy, "change: the gateway's key changed: ask again")
                : anew.end;
  }
  if (!got) return got.end;
  if (got->status == 403) {
    auto ok = with.tokens.forget(nonce);
    return ok ? fault(call_fault::tokens, "change: none is due for this token")
              : call_end{call_fault::here, ok.why()};
  }
  if (got->status == 409 || got->status == 503)
    return fault(call_fault::busy, "change: the gateway answers {}: ask later", got->status);
  if (got->status != 200 || got->content_type != token_response_media)
    return fault(call_fault::gateway, "change: the gateway answers {}", got->status);
  auto ok = with.tokens.take_change(nonce, got->body);
  return ok ? call_end() : call_end{call_fault::trust, ok.why()};
}

}  // namespace lethe
