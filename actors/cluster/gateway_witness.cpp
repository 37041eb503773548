#include "actors/cluster/gateway.hpp"

namespace lethe {

void gateway_state::ask_witnesses() {
  if (!witnesses_) return;
  for (auto& ask : witnesses_->due(clerk_.now_ns())) {
    const auto& at = setup_.witnesses[ask.witness];
    http_call call{.to = at.origin,
                   .method = "POST",
                   .path = at.path,
                   .fields = {{"Content-Type", "text/plain; charset=utf-8"}},
                   .body = std::move(ask.body)};
    ask_whole(*setup_.witness_client, std::move(call),
              [this, queue = setup_.queue, who = ask.witness](result<http_whole> how) {
                queue->post([this, who, how = std::move(how)] { witness_said(who, how); });
              });
  }
  if (auto ok = witnesses_->publish(clerk_.now_ns()); !ok) note_ = ok.why().text;
}

void gateway_state::witness_said(size_t witness, const result<http_whole>& how) {
  result<witness_answer> said =
      how ? result(witness_answer{uint16_t(how->head.status), {}, how->body})
          : result<witness_answer>(how.why());
  witnesses_->said(witness, said, clerk_.now_ns());
  ask_witnesses();  // again, if it named a size; then what it said is published
}

}  // namespace lethe
