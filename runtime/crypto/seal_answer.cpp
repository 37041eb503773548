#include "runtime/crypto/seal_answer.hpp"

#include "runtime/crypto/random.hpp"
#include "runtime/crypto/sealed_message.hpp"

namespace lethe {

namespace {

std::vector<std::byte> random_bytes(size_t bytes) {
  std::vector<std::byte> out(bytes);
  fill_random(out);
  return out;
}

std::vector<std::byte> salt_of(bytes_view enc, bytes_view nonce) {
  std::vector<std::byte> salt(enc.begin(), enc.end());
  salt.insert(salt.end(), nonce.begin(), nonce.end());
  return salt;
}

error is_over() { return fail("sealed answer: it ended, or was broken, before this"); }

}  // namespace

answer_sealer::answer_sealer(const hpke_suite& suite, const hash32& node_id, bytes_view enc,
                             const key_bytes& secret)
    : nonce_(random_bytes(answer_nonce_bytes(suite))),
      node_id_(node_id),
      chunks_(suite.cipher(), salt_of(enc, nonce_), secret.view()) {}

result<void> answer_sealer::seal(bytes_view plain, bool final, std::vector<std::byte>& out) {
  if (final && !named_)
    return fail("sealed answer: a chunk that names the node comes before the final one");
  auto sealed = chunks_.seal(plain, final, out, named_ ? bytes_view{} : node_id_);
  if (sealed) named_ = true;
  return sealed;
}

result<void> answer_opener::push(bytes_view content, std::pmr::string& out) {
  if (over_) return is_over();
  auto opened = open_all(content, out);
  if (opened) return opened;
  over_ = true;
  drop_secrets();
  return opened;
}

result<void> answer_opener::open_all(bytes_view content, std::pmr::string& out) {
  const size_t missing = answer_nonce_bytes(candidates_[0].node.suite) - nonce_.size();
  bytes_view nonce = content.first(std::min(missing, content.size()));
  nonce_.insert(nonce_.end(), nonce.begin(), nonce.end());
  content = content.subspan(nonce.size());
  while (!content.empty()) {
    auto chunk = frames_.next(content);
    if (!chunk) return chunk.why();
    if (chunk->empty()) break;
    auto opened = chunks_ ? chunks_->open(*chunk, false, out) : open_first(*chunk, out);
    if (!opened) return opened;
  }
  return {};
}

/// Finds out who answers. Whoever's context opens the chunk must be named in it.
result<void> answer_opener::open_first(bytes_view chunk, std::pmr::string& out) {
  const size_t at = out.size();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const answer_candidate& c = candidates_[i];
    chunk_opener opener(c.node.suite.cipher(), salt_of(c.enc, nonce_), c.secret.view());
    if (!opener.open(chunk, false, out)) continue;
    bytes_view name = as_bytes(out).subspan(at, std::min(c.node.id.size(), out.size() - at));
    if (!std::ranges::equal(name, c.node.id)) {
      wipe(out.data() + at, out.size() - at);
      out.resize(at);
      return fail("sealed answer: the node that it names is not the one that sealed it");
    }
    out.erase(at, c.node.id.size());
    who_ = i;
    chunks_.emplace(std::move(opener));
    drop_secrets();
    return {};
  }
  return fail("sealed answer: its first chunk opens for none of the {} nodes asked",
              candidates_.size());
}

result<receipt> answer_opener::finish() {
  if (over_) return is_over();
  over_ = true;
  drop_secrets();
  auto read = open_last();
  if (chunks_) chunks_->close();
  return read;
}

result<receipt> answer_opener::open_last() {
  auto last = frames_.finish();
  if (!last) return last.why();
  if (!chunks_) return fail("sealed answer: no chunk names the node that it is from");
  std::pmr::string plain;  // no content: a receipt
  if (auto opened = chunks_->open(*last, true, plain); !opened) return opened.why();
  auto read = verify_receipt(as_bytes(plain), candidates_[who_].node.sigpk);
  if (!read) return read;
  if (read->token_hash != expected_.token_hash || read->request_hash != expected_.request_hash ||
      read->epoch != expected_.epoch)
    return fail("receipt: it is for another request");
  return read;
}

void answer_opener::drop_secrets() {
  for (answer_candidate& c : candidates_) c.secret.clear();
}

}  // namespace lethe
