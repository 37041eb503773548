#include "runtime/log/signed_head.hpp"

#include <algorithm>
#include <charconv>

#include "runtime/base/base64.hpp"
#include "runtime/log/be_fields.hpp"
#include "runtime/log/log_limits.hpp"

namespace lethe {

namespace {

constexpr std::string_view dash = "\u2014 ";  // an em dash and a blank
constexpr size_t key_id_bytes = 4, time_bytes = 8;

/// Up to the next line's end, which is taken, too. Nothing if there is none.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == text.npos) return {};
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::string cosigned_text(const tree_head& head, uint64_t time_s) {
  return fmt::format("cosignature/v1\ntime {}\n{}", time_s, head.text());
}

result<note_signature> parse_signature(std::string_view line) {
  if (!line.starts_with(dash)) return fail("note: a signature line does not begin with a dash");
  line.remove_prefix(dash.size());
  const size_t blank = line.find(' ');
  if (blank == line.npos || !is_note_name(line.substr(0, blank)))
    return fail("note: a signature line has no good name");
  const std::string_view encoded = line.substr(blank + 1);
  if (encoded.size() > base64_chars(key_id_bytes + limits::log_signature_bytes_max))
    return fail("note: a signature has more than {} bytes", limits::log_signature_bytes_max);
  auto told = from_base64(encoded);
  if (!told || told->size() <= key_id_bytes ||
      told->size() > key_id_bytes + limits::log_signature_bytes_max)
    return fail("note: a signature is not base64 of a key id and 1 to {} bytes",
                limits::log_signature_bytes_max);
  return note_signature{.name = std::string(line.substr(0, blank)),
                        .key_id = load_be<uint32_t>(told->data()),
                        .bytes = {told->begin() + key_id_bytes, told->end()}};
}

const note_signature* find(const signed_head& note, const note_key& key) {
  auto by = [&](const note_signature& s) { return s.name == key.name() && s.key_id == key.id(); };
  auto at = std::ranges::find_if(note.signatures, by);
  return at == note.signatures.end() ? nullptr : &*at;
}

error bad_signature(const note_key& key) {
  return fail("log: bad signature of {}: the head was altered, or the key is another one",
              key.name());
}

/// The time of a cosignature that is right.
std::optional<uint64_t> time_of(const note_signature& s, const tree_head& head,
                                const note_key& key) {
  if (s.bytes.size() != time_bytes + signature_bytes) return {};
  const uint64_t time_s = load_be<uint64_t>(s.bytes.data());
  const bytes_view made = bytes_view(s.bytes).subspan(time_bytes);
  if (!verify_signature(key.public_key(), as_bytes(cosigned_text(head, time_s)), made)) return {};
  return time_s;
}

}  // namespace

std::string tree_head::text() const {
  return fmt::format("{}\n{}\n{}\n", origin, size, to_base64(root));
}

result<tree_head> tree_head::parse(std::string_view text) {
  std::string_view left = text;
  auto origin = take_line(left), size = take_line(left), root = take_line(left);
  if (!root || !left.empty()) return fail("note: not the three lines of a head");
  tree_head head;
  if (!is_note_name(*origin)) return fail("note: its origin is not a good name");
  head.origin = *origin;
  std::from_chars(size->data(), size->data() + size->size(), head.size);
  auto hash = from_base64(*root);
  if (!hash || hash->size() != head.root.size())
    return fail("note: its root is not base64 of 32 bytes");
  std::ranges::copy(*hash, head.root.begin());
  if (head.text() != text) return fail("note: its size is not a number as we write them");
  return head;
}

std::string note_signature::line() const {
  std::vector<std::byte> told;
  append_be(told, key_id);
  append(told, bytes);
  return fmt::format("{}{} {}\n", dash, name, to_base64(told));
}

std::string signed_head::text() const {
  std::string out = head.text() + '\n';
  for (const note_signature& s : signatures) out += s.line();
  return out;
}

result<signed_head> signed_head::parse(std::string_view text) {
  if (text.size() > limits::log_note_bytes_max)
    return fail("note: {} bytes; at most {} are read", text.size(), limits::log_note_bytes_max);
  const size_t end = text.find("\n\n");
  if (end == text.npos) return fail("note: no empty line before its signatures");
  auto head = tree_head::parse(text.substr(0, end + 1));
  if (!head) return head.why();
  auto signatures = parse_signatures(text.substr(end + 2));
  if (!signatures) return signatures.why();
  return signed_head{*std::move(head), *std::move(signatures)};
}

result<std::vector<note_signature>> parse_signatures(std::string_view lines) {
  std::vector<note_signature> signatures;
  while (auto line = take_line(lines)) {
    if (signatures.size() == limits::log_signatures_max)
      return fail("note: more than {} signatures", limits::log_signatures_max);
    auto one = parse_signature(*line);
    if (!one) return one.why();
    signatures.push_back(*std::move(one));
  }
  if (!lines.empty()) return fail("note: its last line does not end");
  if (signatures.empty()) return fail("note: no signature");
  return signatures;
}

note_signature sign_head(const note_signer& log, const tree_head& head) {
  const signature made = log.sign(as_bytes(head.text()));
  return {log.key().name(), log.key().id(), {made.begin(), made.end()}};
}

note_signature cosign_head(const note_signer& witness, const tree_head& head, uint64_t time_s) {
  note_signature s{witness.key().name(), witness.key().id(), {}};
  append_be(s.bytes, time_s);
  append(s.bytes, witness.sign(as_bytes(cosigned_text(head, time_s))));
  return s;
}

result<note_trust> note_trust::make(note_key log, std::vector<note_key> witnesses,
                                    uint32_t quorum) {
  if (log.algorithm() != note_algorithm::ed25519)
    return fail("log key {}: algorithm 04 is for witnesses", log.name());
  if (witnesses.size() > limits::log_witnesses_max)
    return fail("witnesses: {}; at most {}", witnesses.size(), limits::log_witnesses_max);
  if (quorum > witnesses.size())
    return fail("witnesses: a quorum of {} cannot come from {}", quorum, witnesses.size());
  std::vector<hash32> seen{log.public_key()};
  for (const note_key& w : witnesses) {
    if (w.algorithm() != note_algorithm::cosignature)
      return fail("witness {}: its key must have algorithm 04", w.name());
    if (std::ranges::find(seen, w.public_key()) != seen.end())
      return fail("witness {}: its key is there under another name", w.name());
    seen.push_back(w.public_key());
  }
  return note_trust{std::move(log), std::move(witnesses), quorum};
}

result<void> verify_head(const signed_head& note, const note_key& log) {
  if (note.head.origin != log.name())
    return fail("log: another log's head: its origin is not {}", log.name());
  const note_signature* s = find(note, log);
  if (!s) return fail("log: bad signature: none of {}", log.name());
  if (!verify_signature(log.public_key(), as_bytes(note.head.text()), s->bytes))
    return bad_signature(log);
  return {};
}

result<std::vector<uint64_t>> verify_head(const signed_head& note, const note_trust& trust) {
  if (auto ok = verify_head(note, trust.log); !ok) return ok.why();
  std::vector<uint64_t> times;
  for (const note_key& w : trust.witnesses) {
    const note_signature* s = find(note, w);
    if (!s) continue;
    auto time_s = time_of(*s, note.head, w);
    if (!time_s) return bad_signature(w);
    times.push_back(*time_s);
  }
  if (times.size() < trust.quorum)
    return fail("log: no quorum: {} of {} witnesses signed, {} must", times.size(),
                trust.witnesses.size(), trust.quorum);
  std::ranges::sort(times);
  return times;
}

}  // namespace lethe
