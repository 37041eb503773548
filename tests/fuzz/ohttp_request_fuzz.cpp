#include <cstddef>
#include <cstdint>

#include "tests/fuzz/ohttp_examples.hpp"

namespace lethe {
namespace {

struct opened {
  bool whole;
  ohttp_refusal why;
  std::pmr::string plain;
};

opened open(const ohttp_keys& keys, const ohttp_input& in, size_t piece) {
  opened o;
  ohttp_request_opener opener(keys, in.of.form(), 0);
  const bool pushed = push_all(opener, in.content, piece, o.plain);
  o.whole = bool(opener.finish(o.plain));
  o.why = opener.refusal();
  expect(pushed || !o.whole);
  expect(o.whole == (o.why == ohttp_refusal::none));
  std::pmr::string more;
  expect(!opener.push({}, more) && !opener.finish(more) && more.empty());
  return o;
}

ohttp_keys gateway(const ohttp_example& e) {
  const std::array<std::byte, 32> next{std::byte{9}};
  return *ohttp_keys::make({.suite = e.suite(), .seals_max = 4, .first_id = e.key_id},
                           *hpke_key::from_private(0x20, bytes_of(e.gateway_private)),
                           *hpke_key::from_private(0x20, next));
}

}  // namespace
}  // namespace lethe

/// A request is the same at once and in pieces, and is opened once.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lethe;
  const ohttp_input in(data, size);
  const ohttp_keys one = gateway(in.of), other = gateway(in.of);
  const opened at_once = open(one, in, SIZE_MAX), pieces = open(other, in, in.piece);
  expect(at_once.whole == pieces.whole && at_once.why == pieces.why);
  expect(pieces.plain.starts_with(at_once.plain));
  expect(!at_once.whole || at_once.plain == pieces.plain);
  expect(!at_once.whole || open(one, in, in.piece).why == ohttp_refusal::replay);
  return 0;
}
