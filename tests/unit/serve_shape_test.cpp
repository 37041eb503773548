// What leaves a node of an answer, whatever is in it: chunks of one size, a power of two of them.
#include <bit>
#include <thread>

#include "runtime/arena/arena.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/crypto/chunk_frames.hpp"
#include "tests/unit/serve_door.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr size_t nonce_bytes = 16;

/// One answer as it left, and as its client read it.
struct said {
  std::vector<size_t> pieces;  // bytes of each, the nonce aside
  uint32_t status = 0;
  std::string text;
  bool padded_without_arenas = false;
};

class ShapedCall : public NodeDoor {
 protected:
  said ask(std::string_view body, const answer_shape& shape) {
    begin_with(shape);
    auto token = bought();
    auto request = seal(node_, 7, token, body, shape.chunk_bytes);
    auto key = door_->find(request.message);
    const uint64_t others = count_arenas().alive;
    auto opened = node_door::open(*key, request.message, token.to_bytes(),
                                  std::make_shared<silent>(), whose_);
    EXPECT_TRUE(opened) << opened.why().text;
    sealed_call& call = **opened;
    said out;
    std::pmr::string plain;
    std::vector<std::byte> piece;
    while (!call.said_all()) {
      call.pump();
      if (!call.next(piece)) {
        std::this_thread::yield();
        continue;
      }
      if (shape.ticks()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      out.pieces.push_back(piece.size() - (out.pieces.empty() ? nonce_bytes : 0));
      if (call.forgotten() && !call.said_all() && count_arenas().alive == others)
        out.padded_without_arenas = true;
      EXPECT_TRUE(request.answer.push(piece, plain));
      piece.clear();
    }
    auto proof = request.answer.finish();
    EXPECT_TRUE(proof) << proof.why().text;
    EXPECT_TRUE(!proof || proof->bytes_wiped > 0);
    read(plain, out);
    return out;
  }
  static void read(const std::pmr::string& plain, said& out) {
    std::pmr::string text;
    bhttp_response_reader reader(std::pmr::get_default_resource());
    EXPECT_TRUE(reader.feed(plain, text));
    EXPECT_TRUE(reader.finish());
    out.status = reader.status();
    out.text = text;
  }
};

/// The final one's frame has one byte less.
std::vector<size_t> of_one_size(size_t count, size_t chunk) {
  std::vector<size_t> all(count, 2 + chunk + aead_tag_bytes);
  --all.back();
  return all;
}

constexpr const char* bodies[] = {
    R"({"model":"tiny","prompt":"Once","max_tokens":1})",
    R"({"model":"tiny","prompt":"Once","max_tokens":40})",
    R"({"model":"tiny","prompt":"Once","max_tokens":40,"stream":true})",
    R"({"model":"tiny","prompt":"Once","max_tokens":8,"stream":true,"logprobs":5,"n":2})",
    R"({"model":"tiny","prompt":"Once","max_tokens":0)",
    R"({"model":"another, and a long name for one","prompt":"Once"})",
};

TEST_F(ShapedCall, EveryAnswerIsAPowerOfTwoOfOneSize) {
  for (uint32_t tick_ms : {0, 20})
    for (uint32_t chunk : {256u, 2048u})
      for (const char* body : bodies) {
        auto out = ask(body, {chunk, tick_ms});
        EXPECT_TRUE(std::has_single_bit(out.pieces.size())) << body;
        EXPECT_EQ(out.pieces, of_one_size(out.pieces.size(), chunk)) << body;
        EXPECT_FALSE(out.text.empty());
      }
}

/// The control of the test above.
TEST_F(ShapedCall, UnshapedAnswersHaveTheSizesOfWhatIsSaid) {
  std::set<std::vector<size_t>> seen;
  for (const char* body : {bodies[0], bodies[1], bodies[4], bodies[5]})
    seen.insert(ask(body, {}).pieces);
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(ShapedCall, SaysTheSameInAnyShape) {
  auto text_of = [](std::string text) { return text.substr(text.find("\"choices\"")); };
  auto plain = ask(bodies[1], {});
  for (const answer_shape& shape : {answer_shape{256, 0}, answer_shape{8192, 0}, {256, 20}}) {
    auto shaped = ask(bodies[1], shape);
    EXPECT_EQ(shaped.status, 200u);
    EXPECT_EQ(text_of(shaped.text), text_of(plain.text));
  }
  auto refused = ask(bodies[4], {256, 0});
  EXPECT_EQ(refused.status, 400u);
}

TEST_F(ShapedCall, PaddingNeedsNoArena) {
  // 400 bytes and more in chunks of 256: three with the end, which make four with padding.
  bool seen = false;
  for (uint32_t tokens = 1; tokens < 40 && !seen; tokens += 4)
    seen =
        ask(fmt::format(R"({{"model":"tiny","prompt":"Once","max_tokens":{}}})", tokens), {256, 0})
            .padded_without_arenas;
  EXPECT_TRUE(seen);
}

/// A tick has a piece, whether there is something to say or not; without one it waits.
TEST_F(ShapedCall, WithATickThereIsAlwaysSomething) {
  for (bool ticks : {false, true}) {
    answer_shape shape{256, ticks ? 20u : 0u};
    begin_with(shape);
    auto token = bought();
    auto request = seal(node_, 7, token, bodies[0], 256);
    auto key = door_->find(request.message);
    auto call = node_door::open(*key, request.message, token.to_bytes(), std::make_shared<silent>(),
                                whose_);
    ASSERT_TRUE(call);
    std::vector<std::byte> piece;
    for (int i = 0; i < 5; ++i) EXPECT_EQ((*call)->next(piece), ticks);  // nothing was pumped
    (*call)->cancel();
    while (!(*call)->cancelled()) (*call)->pump();
    (*call)->forget();
  }
}

}  // namespace
}  // namespace lethe
