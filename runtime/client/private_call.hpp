#pragma once

#include "runtime/client/cluster_view.hpp"
#include "runtime/client/exposure_budget.hpp"
#include "runtime/client/wallet.hpp"
#include "runtime/crypto/receipt.hpp"

namespace lethe {

/// What calls work with; all of it outlives them.
struct call_parts {
  cluster_view& view;
  oblivious_channel& channel;
  wallet& tokens;
  exposure_budget& exposure;
  std::function<uint64_t()> now_s;     // the wall clock
  std::function<uint64_t()> steady_s;  // one that is never set
  uint32_t redraw_wait_ms = 500;       // at most, at random
};

/// One request of the API: what a node, and nobody else, is to read.
struct private_ask {
  std::string_view path, body;  // "/v1/chat/completions"; JSON
  inner_sink& sink;             // of what the node answers, as it comes
  std::stop_token stop = {};
  bool claim_at_once = false;  // change that is due, rather than some time later
  call_observer observer = {};
};

/// The answer is whole if `proof` is there: the node's word that it has forgotten all of it.
struct private_answer : call_end {
  std::optional<receipt> proof;
  uint32_t draws = 0;
  bool began = false;  // the sink was told something
};

/// Draws a node, seals the request to it, pays, and opens the answer as it comes. Draws anew only
/// when nothing was processed and change is due, and only as often as the policy allows. Blocks;
/// any number of threads may call.
private_answer call_privately(const call_parts& with, const private_ask& what);

/// Asks for the change of a token that was shown, by its nonce; what comes lies in the wallet.
/// `busy`: ask later; `tokens`: none is due, and the token is forgotten.
call_end claim_change(const call_parts& with, const hash32& nonce, std::stop_token stop = {});

}  // namespace lethe
