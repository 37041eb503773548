#include "runtime/crypto/ohttp_request.hpp"

namespace lethe {

namespace {

chunk_keys chunk_keys_of(hpke_keys keys) {
  return {std::move(keys.cipher), std::move(keys.nonces)};
}

error is_over() { return fail("ohttp request: it ended, or was refused, before this"); }

}  // namespace

result<ohttp_request_sealer> ohttp_request_sealer::make(const ohttp_config& to, ohttp_form form) {
  auto ephemeral = hpke_key::make(to.kem);
  if (!ephemeral) return ephemeral.why();
  return make(to, form, *ephemeral);
}

result<ohttp_request_sealer> ohttp_request_sealer::make(const ohttp_config& to, ohttp_form form,
                                                        const hpke_key& ephemeral) {
  auto suite = to.suite();
  if (!suite) return suite.why();
  const ohttp_head head{to.key_id, *suite};
  auto sender = hpke_sender::make(*suite, to.pk, head.info(form), ephemeral);
  if (!sender) return sender.why();
  const auto fixed = head.bytes();
  std::vector<std::byte> front(fixed.begin(), fixed.end());
  front.insert(front.end(), sender->enc().begin(), sender->enc().end());
  auto exchange = ohttp_exchange::of(form, *suite, sender->enc(), sender->keys());
  return ohttp_request_sealer(
      {form, chunk_keys_of((*std::move(sender)).take_keys()), std::move(front)},
      std::move(exchange));
}

result<void> ohttp_request_sealer::seal(bytes_view plain, bool final, std::vector<std::byte>& out) {
  const bool began = !ended();
  auto sealed = body_.seal(plain, final, out);
  if (began && !sealed) exchange_.reset();
  return sealed;
}

result<ohttp_answer_opener> ohttp_request_sealer::answer() {
  if (!exchange_) return fail("ohttp request: its answer was taken, or it was given up");
  if (!ended()) return fail("ohttp request: its answer comes after its final piece");
  ohttp_answer_opener opener(*std::move(exchange_));
  exchange_.reset();
  return opener;
}

result<ohttp_sealed_request> seal_ohttp_request(const ohttp_config& to, bytes_view plain) {
  auto sealer = ohttp_request_sealer::make(to, ohttp_form::whole);
  if (!sealer) return sealer.why();
  std::vector<std::byte> message;
  if (auto sealed = sealer->seal(plain, true, message); !sealed) return sealed.why();
  return ohttp_sealed_request{std::move(message), *sealer->answer()};
}

error ohttp_request_opener::refused(ohttp_refusal kind, error why) {
  refusal_ = kind;
  return why;
}

void ohttp_request_opener::give_up(std::pmr::string& out, size_t at) noexcept {
  if (body_ && refusal_ == ohttp_refusal::none) refusal_ = body_->refusal();
  over_ = true;
  body_.reset();
  exchange_.reset();
  seen_.reset();
  cut_back(out, at);
}

result<void> ohttp_request_opener::push(bytes_view content, std::pmr::string& out) {
  if (over_) return is_over();
  const size_t at = out.size();
  auto taken = take(content, out);
  if (!taken) give_up(out, at);
  return taken;
}

result<ohttp_exchange> ohttp_request_opener::finish(std::pmr::string& out) {
  if (over_) return is_over();
  const size_t at = out.size();
  auto ended = end(out);
  if (!ended) give_up(out, at);
  over_ = true;
  body_.reset();
  return ended;
}

result<void> ohttp_request_opener::take(bytes_view content, std::pmr::string& out) {
  if (content.size() > bytes_max_ - taken_)
    return refused(ohttp_refusal::too_large,
                   fail("ohttp request: of more than {} bytes", bytes_max_));
  taken_ += content.size();
  if (!body_)
    if (auto head = take_head(content); !head) return head;
  if (!body_) return {};
  if (auto opened = body_->push(content, out); !opened) return opened;
  return remember();
}

/// Fills `front_` up to `bytes`; false when `content` does not reach.
bool ohttp_request_opener::fill_front(size_t bytes, bytes_view& content) {
  bytes_view part = content.first(std::min(bytes - std::min(bytes, front_.size()), content.size()));
  front_.insert(front_.end(), part.begin(), part.end());
  content = content.subspan(part.size());
  return front_.size() >= bytes;
}

result<void> ohttp_request_opener::take_head(bytes_view& content) {
  if (!fill_front(ohttp_head::wire_bytes, content)) return {};
  const auto head = ohttp_head::from_bytes(bytes_view(front_).first<ohttp_head::wire_bytes>());
  const auto* key = keys_.find(head, now_);
  if (!key)
    return refused(ohttp_refusal::key,
                   fail("ohttp request: key {} is unknown, expired or of another suite; fetch the "
                        "gateway's keys again",
                        head.key_id));
  if (!fill_front(ohttp_head::wire_bytes + head.suite.public_bytes(), content)) return {};
  return begin(head, *key);
}

result<void> ohttp_request_opener::begin(const ohttp_head& head, const ohttp_keys::accepted& key) {
  bytes_view enc = bytes_view(front_).subspan(ohttp_head::wire_bytes);
  auto receiver = hpke_receiver::make(head.suite, key.key, enc, head.info(form_));
  if (!receiver) return refused(ohttp_refusal::sealed, receiver.why());
  exchange_ = ohttp_exchange::of(form_, head.suite, enc, receiver->keys());
  body_.emplace(form_, chunk_keys_of((*std::move(receiver)).take_keys()));
  seen_ = key.seen;
  return {};
}

/// Once, when something opened: before that anybody could fill the memory, or have the client's own
/// request refused, with a seal that was only overheard.
result<void> ohttp_request_opener::remember() {
  if (!seen_ || !body_->opened()) return {};
  auto seen = std::exchange(seen_, nullptr);
  if (seen->full())
    return refused(ohttp_refusal::full,
                   fail("ohttp request: its key remembers {} seals and no more; rotate the keys",
                        seen->size()));
  if (!seen->insert(exchange_->enc))
    return refused(ohttp_refusal::replay, fail("ohttp request: its seal was opened before"));
  return {};
}

result<ohttp_exchange> ohttp_request_opener::end(std::pmr::string& out) {
  if (!body_)
    return refused(ohttp_refusal::format, fail("ohttp request: it ended within its head"));
  if (auto opened = body_->finish(out); !opened) return opened.why();
  if (auto first = remember(); !first) return first.why();
  ohttp_exchange exchange = *std::move(exchange_);
  exchange_.reset();
  return exchange;
}

}  // namespace lethe
