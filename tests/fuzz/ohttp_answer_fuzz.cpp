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

opened open(const ohttp_input& in, size_t piece) {
  opened o;
  ohttp_answer_opener opener(
      {in.of.form(), in.of.suite(), bytes_of(in.of.enc), key_bytes(bytes_of(in.of.answer_secret))});
  const bool pushed = push_all(opener, in.content, piece, o.plain);
  o.whole = bool(opener.finish(o.plain));
  o.why = opener.refusal();
  expect(pushed || !o.whole);
  expect(o.whole == (o.why == ohttp_refusal::none));
  std::pmr::string more;
  expect(!opener.push({}, more) && !opener.finish(more) && more.empty());
  return o;
}

}  // namespace
}  // namespace lethe

/// An answer is the same at once and in pieces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lethe;
  const ohttp_input in(data, size);
  const opened at_once = open(in, SIZE_MAX), pieces = open(in, in.piece);
  expect(at_once.whole == pieces.whole && at_once.why == pieces.why);
  expect(pieces.plain.starts_with(at_once.plain));
  expect(!at_once.whole || at_once.plain == pieces.plain);
  return 0;
}
