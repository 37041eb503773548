#include "runtime/crypto/ohttp_answer.hpp"

#include "runtime/crypto/random.hpp"

namespace lethe {

namespace {

std::vector<std::byte> random_nonce(const hpke_suite& suite) {
  std::vector<std::byte> nonce(answer_nonce_bytes(suite));
  fill_random(nonce);
  return nonce;
}

ohttp_body_sealer body_of(const ohttp_exchange& x, bytes_view nonce) {
  check(nonce.size() == answer_nonce_bytes(x.suite) && x.secret.size() == nonce.size());
  return {x.form,
          chunk_keys::sealing(x.suite.cipher(), x.salt(nonce), x.secret.view()),
          {nonce.begin(), nonce.end()}};
}

error is_over() { return fail("ohttp answer: it ended, or was broken, before this"); }

}  // namespace

ohttp_answer_sealer::ohttp_answer_sealer(ohttp_exchange exchange)
    : body_(body_of(exchange, random_nonce(exchange.suite))) {}

ohttp_answer_sealer::ohttp_answer_sealer(ohttp_exchange exchange, bytes_view nonce)
    : body_(body_of(exchange, nonce)) {}

void ohttp_answer_opener::drop_secrets() noexcept {
  over_ = true;
  body_.reset();
  exchange_.secret.clear();
}

/// Nothing of a call that fails is left, and nothing follows it.
result<void> ohttp_answer_opener::settled(result<void> done, std::pmr::string& out, size_t at) {
  if (done) return done;
  if (body_ && refusal_ == ohttp_refusal::none) refusal_ = body_->refusal();
  drop_secrets();
  cut_back(out, at);
  return done;
}

result<void> ohttp_answer_opener::push(bytes_view content, std::pmr::string& out) {
  if (over_) return is_over();
  const size_t at = out.size();
  return settled(take(content, out), out, at);
}

result<void> ohttp_answer_opener::finish(std::pmr::string& out) {
  if (over_) return is_over();
  const size_t at = out.size();
  return settled(end(out), out, at);
}

result<void> ohttp_answer_opener::take(bytes_view content, std::pmr::string& out) {
  if (form() == ohttp_form::whole && content.size() > whole_bytes_max_ - taken_) {
    refusal_ = ohttp_refusal::too_large;
    return fail("ohttp answer: of more than {} bytes", whole_bytes_max_);
  }
  taken_ += content.size();
  if (!body_) {
    const size_t n = answer_nonce_bytes(exchange_.suite);
    bytes_view nonce = content.first(std::min(n - nonce_.size(), content.size()));
    nonce_.insert(nonce_.end(), nonce.begin(), nonce.end());
    content = content.subspan(nonce.size());
    if (nonce_.size() < n) return {};
    body_.emplace(form(), chunk_keys::opening(exchange_.suite.cipher(), exchange_.salt(nonce_),
                                              exchange_.secret.view()));
    exchange_.secret.clear();
  }
  return body_->push(content, out);
}

result<void> ohttp_answer_opener::end(std::pmr::string& out) {
  if (!body_) {
    refusal_ = ohttp_refusal::format;
    return fail("ohttp answer: it ended within its nonce");
  }
  auto opened = body_->finish(out);
  if (opened) drop_secrets();
  return opened;
}

}  // namespace lethe
