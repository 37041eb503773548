#include "runtime/crypto/sealed_message.hpp"

#include "runtime/crypto/big_endian.hpp"

namespace lethe {

namespace {

// ver ‖ suite ‖ epoch ‖ count
constexpr size_t fixed_bytes = 1 + hpke_suite::wire_bytes + 4 + 1;

void append(std::vector<std::byte>& out, bytes_view part) {
  out.insert(out.end(), part.begin(), part.end());
}

/// ver ‖ suite ‖ epoch
std::array<std::byte, fixed_bytes - 1> first_fields(const sealed_message& m) {
  std::array<std::byte, fixed_bytes - 1> out;
  out[0] = std::byte{seal_version};
  std::ranges::copy(m.suite.bytes(), out.begin() + 1);
  store_be(m.epoch, out.data() + 1 + hpke_suite::wire_bytes);
  return out;
}

}  // namespace

result<sealed_message> sealed_message::parse(bytes_view bytes) {
  if (bytes.size() > limits::sealed_request_bytes_max)
    return fail("sealed request: {} bytes; {} are accepted", bytes.size(),
                limits::sealed_request_bytes_max);
  if (bytes.size() < fixed_bytes)
    return fail("sealed request: {} bytes are too few for its head", bytes.size());
  if (uint8_t(bytes[0]) != seal_version)
    return fail("sealed request: version {}; this release knows {}", uint8_t(bytes[0]),
                seal_version);
  sealed_message m{.suite = hpke_suite::from_bytes(bytes.subspan<1, hpke_suite::wire_bytes>())};
  if (auto known = expect_known(m.suite); !known) return known.why();
  m.epoch = load_be<uint32_t>(bytes.data() + 1 + hpke_suite::wire_bytes);
  const size_t count = uint8_t(bytes[fixed_bytes - 1]);
  if (count == 0 || count > limits::seal_nodes_max)
    return fail("sealed request: for {} nodes; 1 to {} are accepted", count,
                limits::seal_nodes_max);
  const size_t enc = m.suite.public_bytes();
  const size_t wrapped = m.suite.cipher_key_bytes() + aead_tag_bytes;
  bytes = bytes.subspan(fixed_bytes);
  if (bytes.size() < count * (32 + enc + wrapped))
    return fail("sealed request: it ends within its head");
  for (size_t i = 0; i < count; ++i) {
    seal_entry entry{.enc = bytes.subspan(32, enc), .wrapped = bytes.subspan(32 + enc, wrapped)};
    std::ranges::copy(bytes.first<32>(), entry.node_id.begin());
    m.entries.push_back(entry);
    bytes = bytes.subspan(32 + enc + wrapped);
  }
  m.chunks = bytes;
  return m;
}

std::vector<std::byte> sealed_message::head() const {
  std::vector<std::byte> out;
  append(out, first_fields(*this));
  out.push_back(std::byte(uint8_t(entries.size())));
  for (const seal_entry& e : entries)
    for (bytes_view part : {bytes_view(e.node_id), e.enc, e.wrapped}) append(out, part);
  return out;
}

hash32 sealed_message::binding(const hash32& token_hash) const {
  std::vector<std::byte> bound;
  append(bound, first_fields(*this));
  bound.push_back(std::byte(uint8_t(entries.size())));
  for (const seal_entry& e : entries)
    for (bytes_view part : {bytes_view(e.node_id), e.enc}) append(bound, part);
  return sha256({bound, token_hash});
}

std::vector<std::byte> sealed_message::info(const hash32& node_id) const {
  std::vector<std::byte> out;
  append(out, as_bytes("lethe sealed request"));
  out.push_back(std::byte{});
  append(out, first_fields(*this));
  append(out, node_id);
  return out;
}

}  // namespace lethe
