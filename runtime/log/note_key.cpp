#include "runtime/log/note_key.hpp"

#include <algorithm>

#include "runtime/base/base64.hpp"
#include "runtime/base/wipe.hpp"
#include "runtime/crypto/big_endian.hpp"
#include "runtime/crypto/key_bytes.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/log/log_limits.hpp"

namespace lethe {

namespace {

constexpr std::string_view private_mark = "PRIVATE+KEY+";
constexpr size_t key_bytes_told = 1 + 32;

/// NAME+KEYID+BASE64 taken apart.
struct key_text {
  std::string name;
  uint32_t id = 0;
  key_bytes told{key_bytes_told};  // algorithm, and a public key or a seed

  note_algorithm algorithm() const { return note_algorithm(told.view()[0]); }
  bytes_view key() const { return told.view().subspan(1); }
};

std::string hex8(uint32_t id) { return fmt::format("{:08x}", id); }

result<key_text> take_apart(std::string_view text) {
  const size_t first = text.find('+'),
               second = first == text.npos ? first : text.find('+', first + 1);
  if (second == text.npos) return fail("note key: not NAME+KEYID+KEY");
  auto told = from_base64(text.substr(second + 1));
  if (!told || told->size() != key_bytes_told)
    return fail("note key: its last part is not base64 of {} bytes", key_bytes_told);
  key_text parts{.name = std::string(text.substr(0, first))};
  std::ranges::copy(*told, parts.told.data());
  wipe(told->data(), told->size());
  const std::string_view id = text.substr(first + 1, second - first - 1);
  for (char c : id) parts.id = parts.id << 4 | uint32_t(c <= '9' ? c - '0' : c - 'a' + 10);
  if (hex8(parts.id) != id) return fail("note key: its id is not 8 digits of lower-case hex");
  return parts;
}

error wrong_id(const note_key& key) {
  return fail("note key {}: its id is not that of its key; was the name changed?", key.name());
}

}  // namespace

bool is_note_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= limits::log_name_bytes_max &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f && c != '+'; });
}

result<note_key> note_key::make(std::string name, note_algorithm algorithm,
                                const hash32& public_key) {
  if (!is_note_name(name))
    return fail("note key: a name is 1 to {} printable ASCII characters but blanks and '+'",
                limits::log_name_bytes_max);
  if (algorithm != note_algorithm::ed25519 && algorithm != note_algorithm::cosignature)
    return fail("note key {}: algorithm {:02x}; this release has 01 and 04", name,
                uint8_t(algorithm));
  note_key made;
  const std::byte between[] = {std::byte{'\n'}, std::byte(algorithm)};
  made.id_ = load_be<uint32_t>(sha256({as_bytes(name), between, public_key}).data());
  made.name_ = std::move(name);
  made.algorithm_ = algorithm;
  made.public_key_ = public_key;
  return made;
}

result<note_key> note_key::parse(std::string_view text) {
  auto parts = take_apart(text);
  if (!parts) return parts.why();
  hash32 public_key;
  std::ranges::copy(parts->key(), public_key.begin());
  auto key = make(std::move(parts->name), parts->algorithm(), public_key);
  if (key && key->id() != parts->id) return wrong_id(*key);
  return key;
}

std::string note_key::text() const {
  std::vector<std::byte> told{std::byte(algorithm_)};
  told.insert(told.end(), public_key_.begin(), public_key_.end());
  return name_ + '+' + hex8(id_) + '+' + to_base64(told);
}

wiped_text::~wiped_text() { wipe(text.data(), text.size()); }

result<note_signer> note_signer::make(std::string name, note_algorithm algorithm, bytes_view seed) {
  auto sign = signing_key::from_private(seed);
  if (!sign) return sign.why();
  auto key = note_key::make(std::move(name), algorithm, sign->public_key());
  if (!key) return key.why();
  return note_signer(*std::move(key), *std::move(sign));
}

result<note_signer> note_signer::parse(std::string_view text) {
  if (!text.starts_with(private_mark)) return fail("note key: not a private key");
  auto parts = take_apart(text.substr(private_mark.size()));
  if (!parts) return parts.why();
  auto signer = make(std::move(parts->name), parts->algorithm(), parts->key());
  if (signer && signer->key().id() != parts->id) return wrong_id(signer->key());
  return signer;
}

result<wiped_text> make_private_note_key(std::string_view name, note_algorithm algorithm) {
  key_bytes told(key_bytes_told);
  told.bytes()[0] = std::byte(algorithm);
  fill_random(told.bytes().subspan(1));
  auto signer = note_signer::make(std::string(name), algorithm, told.view().subspan(1));
  if (!signer) return signer.why();
  std::string encoded = to_base64(told.view());
  wiped_text made;
  made.text = fmt::format("{}{}+{}+{}", private_mark, name, hex8(signer->key().id()), encoded);
  wipe(encoded.data(), encoded.size());
  return made;
}

}  // namespace lethe
