// A witness as others reach it: every status over real sockets, and what it remembers.
#include "runtime/witness/witness_server.hpp"

#include "runtime/log/log_limits.hpp"
#include "tests/unit/http_peers.hpp"
#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;
using http_test::client;
using http_test::reply;

free_log log_of(uint32_t entries, std::string_view payload = "p") {
  free_log log;
  for (uint32_t i = 1; i <= entries; ++i) log.add(sample(log_kind::release, i, payload));
  return log;
}

witness_ask ask_for(const free_log& log, uint64_t old_size) {
  const merkle_tree tree = log.tree();
  return {old_size, *consistency_proof(old_size, tree.size(), tree.source()), log.note(0, 0)};
}

class WitnessServer : public testing::Test {
 protected:
  void SetUp() override { start(); }
  void start() {
    server_.reset();
    auto made = open();
    ASSERT_TRUE(made) << made.why().text;
    server_ = *std::move(made);
  }
  result<std::unique_ptr<witness_server>> open() {
    return witness_server::start({.listen = {{"witness", "127.0.0.1:0"}},
                                  .folder = here_ / "state" / "w",
                                  .name = "outside",
                                  .logs = {log_signer().key()},
                                  .now_s = [] { return t0; }});
  }
  reply say(const std::string& text) { return client(server_->bound()[0].address).ask(text); }
  reply post(const std::string& body) {
    return say("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  reply post(const free_log& log, uint64_t old_size) { return post(ask_for(log, old_size).text()); }

  scratch here_;
  std::unique_ptr<witness_server> server_;
};

TEST_F(WitnessServer, CosignsWhatGrowsSoThatAReaderBelievesIt) {
  uint64_t old = 0;
  for (uint32_t size : {3, 3, 300}) {
    auto answer = post(log_of(size), old);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.field("Content-Type"), "text/plain; charset=utf-8");
    auto note = log_of(size).note(0, 0);
    note.signatures.push_back(parse_signatures(answer.body)->at(0));
    auto times = verify_head(note, *note_trust::make(log_signer().key(), {server_->key()}, 1));
    ASSERT_TRUE(times) << times.why().text;
    EXPECT_EQ(times->front(), t0);
    old = size;
  }
  EXPECT_EQ(server_->numbers().cosigned, 3u);
  EXPECT_EQ(server_->numbers().refused, 0u);
}

TEST_F(WitnessServer, RefusesAForkOfOneSizeAndOfALargerOne) {
  ASSERT_EQ(post(log_of(5), 0).status, 200);
  auto same_size = post(log_of(5, "other"), 5);
  EXPECT_EQ(same_size.status, 409);
  EXPECT_EQ(same_size.field("Content-Type"), "text/x.tlog.size");
  EXPECT_EQ(same_size.body, "5\n");
  EXPECT_EQ(post(log_of(8, "other"), 5).status, 422);
  EXPECT_EQ(post(log_of(8), 5).status, 200) << "the first history goes on";
}

TEST_F(WitnessServer, AnswersEachWrongAskWithItsStatus) {
  ASSERT_EQ(post(log_of(5), 0).status, 200);
  EXPECT_EQ(post("old 5\n").status, 400);
  auto larger = ask_for(log_of(6), 5);
  larger.old_size = 7;
  EXPECT_EQ(post(larger.text()).status, 400);
  auto forged = ask_for(log_of(6), 5);
  forged.note.signatures[0].bytes[3] ^= std::byte{1};
  EXPECT_EQ(post(forged.text()).status, 403);
  auto unknown = ask_for(log_of(6), 5);
  unknown.note.head.origin = "other.test";
  EXPECT_EQ(post(unknown.text()).status, 404);
  EXPECT_EQ(post(log_of(6), 4).body, "5\n");
  EXPECT_EQ(post(std::string(limits::witness_ask_bytes_max + 1, 'x')).status, 413);
  EXPECT_EQ(post(std::string(limits::witness_ask_bytes_max, 'x')).status, 400);
  EXPECT_EQ(say("GET /add-checkpoint HTTP/1.1\r\nHost: w\r\n\r\n").status, 405);
  EXPECT_EQ(say("GET /x HTTP/1.1\r\nHost: w\r\n\r\n").status, 404);
  EXPECT_EQ(server_->numbers().cosigned, 1u);
  EXPECT_EQ(server_->numbers().failed, 0u);
}

TEST_F(WitnessServer, SaysWhoItIs) {
  auto said = say("GET / HTTP/1.1\r\nHost: w\r\n\r\n");
  EXPECT_EQ(said.status, 200);
  EXPECT_EQ(said.body, "a witness of logs, add-checkpoint: " + server_->key().text() + "\n");
  auto key = keep_witness_key(here_ / "state" / "w", "outside");
  ASSERT_TRUE(key) << key.why().text;
  EXPECT_EQ(*key, server_->key()) << "also while it runs";
}

TEST_F(WitnessServer, GoesOnWithItsKeyAndMemoryAndHasItsFolderAlone) {
  const note_key before = server_->key();
  ASSERT_EQ(post(log_of(5), 0).status, 200);
  EXPECT_FALSE(open()) << "one process at a time";
  start();
  EXPECT_EQ(server_->key(), before);
  EXPECT_EQ(post(log_of(8, "other"), 5).status, 422);
  EXPECT_EQ(post(log_of(8), 5).status, 200);
  EXPECT_FALSE(keep_witness_key(here_ / "state" / "w", "another"));
}

TEST_F(WitnessServer, SaysSoWhenItCannotRemember) {
  fs::remove_all(here_ / "state");
  EXPECT_EQ(post(log_of(5), 0).status, 500);
  EXPECT_EQ(server_->numbers().failed, 1u);
  EXPECT_NE(server_->trouble(), "");
}

}  // namespace
}  // namespace lethe
