#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/refusal.hpp"

namespace {

using namespace lethe;

constexpr uint32_t now = 7;
const hash32 token = sha256({as_bytes("fuzz")});

const node_key& the_node() {
  static const node_key key = [] {
    std::array<std::byte, 32> seed{};
    return *node_key::from({}, *hpke_key::derive(0x20, seed), *signing_key::from_private(seed));
  }();
  return key;
}

std::pmr::memory_resource* heap() { return std::pmr::new_delete_resource(); }

/// Takes numbers off the front of the input; zeroes when it is used up.
struct source {
  bytes_view left;
  uint8_t byte() {
    if (left.empty()) return 0;
    uint8_t b = uint8_t(left[0]);
    left = left.subspan(1);
    return b;
  }
  size_t below(size_t n) { return n == 0 ? 0 : (size_t(byte()) << 8 | byte()) % n; }
};

/// Some edits: a byte changed, put in, taken out, or the rest cut off.
void edit(std::vector<std::byte>& b, source& s) {
  for (size_t edits = s.byte() % 4; edits > 0 && !b.empty(); --edits) {
    auto at = b.begin() + ptrdiff_t(s.below(b.size()));
    switch (s.byte() % 4) {
      case 0:
        *at = std::byte(s.byte());
        break;
      case 1:
        b.insert(at, std::byte(s.byte()));
        break;
      case 2:
        b.erase(at);
        break;
      case 3:
        b.erase(at, b.end());
    }
  }
}

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

/// A request of any bytes never opens, also behind a head that names the node.
void any_request(source s) {
  expect(!open_request(the_node(), s.left, now, token, heap()));
  auto sealed = seal_request({}, std::array{the_node().published()}, now, token);
  std::vector<std::byte> message = sealed->message;
  message.resize(12 + 32);  // up to enc
  message.insert(message.end(), s.left.begin(), s.left.end());
  expect(!open_request(the_node(), message, now, token, heap()));
}

/// A request that a client sealed and someone edited: opens exactly when it is as it was.
void edited_request(source s) {
  std::vector<node_public> nodes = {the_node().published()};
  std::vector<std::byte> plain(s.below(40'000), std::byte{'p'});
  auto sealed = seal_request(plain, nodes, now, token);
  expect(bool(sealed));
  std::vector<std::byte> message = sealed->message;
  edit(message, s);
  auto opened = open_request(the_node(), message, now + s.byte() % 2, token, heap());
  expect(bool(opened) == (message == sealed->message));
  if (opened) expect(as_text(plain) == std::string_view(opened->plain));
}

/// An answer that someone edited, in pieces: what opens is a beginning of what was said, and only
/// all of it ends well.
void edited_answer(source s, uint32_t chunk_bytes) {
  std::vector<node_public> nodes = {node_key::make()->published(), the_node().published()};
  auto sealed = seal_request(as_bytes("question"), nodes, now, token, chunk_bytes);
  auto opened = open_request(the_node(), sealed->message, now, token, heap(), chunk_bytes);
  expect(bool(opened));
  std::vector<std::byte> stream(opened->answer.first().begin(), opened->answer.first().end());
  std::string said;
  for (size_t chunks = 1 + s.byte() % 4; chunks > 0; --chunks) {
    std::string text(1 + s.below(std::min(opened->answer.room(), size_t{300})), char('a' + chunks));
    expect(bool(opened->answer.seal(as_bytes(text), false, stream)));
    said += text;
  }
  while (chunk_bytes && !opened->answer.may_end())
    expect(bool(opened->answer.seal({}, false, stream)));
  const receipt r{.token_hash = token, .request_hash = opened->request_hash, .epoch = now};
  expect(bool(opened->answer.seal(sign_receipt(the_node(), r), true, stream)));
  const std::vector<std::byte> right = stream;
  edit(stream, s);
  std::pmr::string heard;
  bool good = true;
  for (bytes_view left = stream; good && !left.empty();) {
    bytes_view piece = left.first(std::min(left.size(), 1 + s.below(200)));
    left = left.subspan(piece.size());
    good = bool(sealed->answer.push(piece, heard));
  }
  good = bool(sealed->answer.finish()) && good;
  expect(said.starts_with(heard));
  expect(!good || std::string_view(said) == std::string_view(heard));
  expect(good || stream != right);
}

/// A node's refusal that someone edited is nobody's, and one of any bytes was signed by nobody.
void edited_refusal(source s) {
  const hash32 binding = sha256({as_bytes("request")});
  const auto reason = refusal_reason(1 + s.byte() % refusal_reasons);
  const auto right = sign_refusal(the_node(), {binding, now, reason});
  std::vector<std::byte> bytes(right.begin(), right.end());
  edit(bytes, s);
  const auto& sigpk = the_node().published().sigpk;
  expect(bool(verify_refusal(bytes, sigpk, binding)) == std::ranges::equal(bytes, right));
  expect(!verify_refusal(bytes, sigpk, token));
  expect(!verify_refusal(s.left, sigpk, binding));
}

/// An answer of any bytes never opens, whole or in pieces.
void any_answer(source s) {
  std::vector<node_public> nodes = {the_node().published()};
  std::pmr::string heard;
  for (size_t piece : {size_t{1} << 20, size_t{1} + s.byte()}) {
    auto sealed = seal_request({}, nodes, now, token);
    bool good = true;
    for (bytes_view left = s.left; good && !left.empty();) {
      bytes_view part = left.first(std::min(left.size(), piece));
      left = left.subspan(part.size());
      good = bool(sealed->answer.push(part, heard));
    }
    expect(!sealed->answer.finish() && heard.empty());
  }
}

/// Frames of any bytes are cut in the same places, whole or in pieces.
void any_frames(source s) {
  auto cut = [&s](size_t piece) {
    chunk_frames frames;
    std::vector<size_t> sizes;
    for (bytes_view left = s.left; !left.empty();) {
      bytes_view part = left.first(std::min(left.size(), piece));
      left = left.subspan(part.size());
      while (true) {
        auto chunk = frames.next(part);
        if (!chunk) return sizes.push_back(SIZE_MAX), sizes;
        if (chunk->empty()) break;
        sizes.push_back(chunk->size());
      }
    }
    auto last = frames.finish();
    sizes.push_back(last ? last->size() : 0);
    return sizes;
  };
  const size_t piece = 1 + s.byte();
  expect(cut(size_t{1} << 20) == cut(piece));
}

}  // namespace

/// Sealed requests and answers: of any bytes, and good ones that were edited.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  source s{{reinterpret_cast<const std::byte*>(data), size}};
  switch (s.byte() % 7) {
    case 0:
      any_request(s);
      break;
    case 1:
      edited_request(s);
      break;
    case 2:
      edited_answer(s, 0);
      break;
    case 3:
      any_answer(s);
      break;
    case 4:
      any_frames(s);
      break;
    case 5:
      edited_answer(s, s.byte() % 2 ? 512 : answer_shape::chunk_bytes_least);
      break;
    case 6:
      edited_refusal(s);
  }
  return 0;
}
