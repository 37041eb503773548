#include "runtime/log/witness.hpp"

#include <algorithm>
#include <charconv>

#include "runtime/base/base64.hpp"
#include "runtime/base/durable_file.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/log/log_limits.hpp"

namespace lethe {

namespace {

witness_answer refuse(uint16_t status, std::string_view why) {
  return {status, "text/plain; charset=utf-8", std::string(why) + '\n'};
}

witness_answer conflict(const tree_head& last) {
  return {409, "text/x.tlog.size", fmt::format("{}\n", last.size)};
}

}  // namespace

std::string witness_ask::text() const {
  std::string out = fmt::format("old {}\n", old_size);
  for (const hash32& hash : proof) out += to_base64(hash) + '\n';
  return out + '\n' + note.text();
}

result<witness_ask> witness_ask::parse(std::string_view text) {
  if (text.size() > limits::witness_ask_bytes_max)
    return fail("add-checkpoint: {} bytes; at most {} are read", text.size(),
                limits::witness_ask_bytes_max);
  const size_t end = text.find("\n\n");
  if (end == text.npos || !text.starts_with("old "))
    return fail("add-checkpoint: not an old size, a proof, an empty line and a note");
  witness_ask ask;
  std::string_view head = text.substr(4, end + 1 - 4);
  std::from_chars(head.data(), head.data() + head.size(), ask.old_size);
  head.remove_prefix(head.find('\n') + 1);
  for (; !head.empty(); head.remove_prefix(head.find('\n') + 1)) {
    auto hash = from_base64(head.substr(0, head.find('\n')));
    if (!hash || hash->size() != sizeof(hash32) || ask.proof.size() == limits::log_proof_max)
      return fail("add-checkpoint: a proof is up to {} hashes in base64", limits::log_proof_max);
    std::ranges::copy(*hash, ask.proof.emplace_back().begin());
  }
  auto note = signed_head::parse(text.substr(end + 2));
  if (!note) return note.why();
  ask.note = *std::move(note);
  if (ask.text() != text) return fail("add-checkpoint: not as we write it");
  return ask;
}

result<witness> witness::open(const std::filesystem::path& folder, note_signer signer,
                              std::vector<note_key> logs) {
  if (signer.key().algorithm() != note_algorithm::cosignature)
    return fail("witness {}: its key must have algorithm 04", signer.key().name());
  if (auto ok = make_folder(folder); !ok) return ok.why();
  auto lock = locked_file::open(folder / "lock");
  if (!lock) return lock.why();
  witness made(folder, std::move(signer), *std::move(lock));
  for (note_key& log : logs)
    if (auto ok = made.know(std::move(log)); !ok) return ok.why();
  return made;
}

std::filesystem::path witness::file_of(const std::string& origin) const {
  return folder_ / (to_hex(sha256({as_bytes(origin)})) + ".head");
}

result<void> witness::know(note_key log) {
  const std::string origin = log.name();
  tree_head last{.origin = origin, .root = merkle_frontier().root()};
  const auto file = file_of(origin);
  if (std::filesystem::exists(file)) {
    auto text = read_text(file, limits::log_note_bytes_max);
    if (!text) return text.why();
    auto head = tree_head::parse(*text);
    if (!head || head->origin != origin)
      return fail("{}: damaged; bring it back from a copy", file.string());
    last = *std::move(head);
  }
  if (!logs_.try_emplace(origin, known_log{std::move(log), std::move(last)}).second)
    return fail("witness: log {} is given twice", origin);
  return {};
}

const tree_head* witness::last(const std::string& origin) const {
  auto at = logs_.find(origin);
  return at == logs_.end() ? nullptr : &at->second.last;
}

witness_answer witness::add_checkpoint(std::string_view body, uint64_t now_s) {
  auto ask = witness_ask::parse(body);
  if (!ask) return refuse(400, ask.why().text);
  auto log = logs_.find(ask->note.head.origin);
  if (log == logs_.end()) return refuse(404, "add-checkpoint: an unknown log");
  if (auto ok = verify_head(ask->note, log->second.key); !ok) return refuse(403, ok.why().text);
  return judge(*ask, log->second.last, now_s);
}

witness_answer witness::judge(const witness_ask& ask, tree_head& last, uint64_t now_s) {
  const tree_head& head = ask.note.head;
  if (ask.old_size > head.size) return refuse(400, "add-checkpoint: the old size is the larger");
  if (ask.old_size != last.size) return conflict(last);
  if (head.size == last.size && head.root != last.root) return conflict(last);
  const bool follows =
      last.size == 0 ? ask.proof.empty()
                     : verify_consistency(last.size, head.size, ask.proof, last.root, head.root);
  if (!follows) return refuse(422, "add-checkpoint: the proof does not lead from head to head");
  if (head != last) {
    if (auto ok = write_durable(file_of(head.origin), as_bytes(head.text())); !ok)
      return refuse(500, "add-checkpoint: cannot remember the head");
    last = head;
  }
  return {200, "text/plain; charset=utf-8", cosign_head(signer_, head, now_s).line()};
}

}  // namespace lethe
