#include <fmt/ranges.h>

#include "log_samples.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/refusal.hpp"
#include "runtime/crypto/sealed_message.hpp"

/// What crosses the private path, written by us and by the JavaScript client of tests/interop: each
/// opens and verifies what the other wrote. LETHE_WRITE_VECTORS=1 writes ours anew.
namespace lethe {
namespace {

using namespace test;
using simdjson::dom::element;

std::string hex(bytes_view b) {
  std::string out;
  for (std::byte byte : b) out += fmt::format("{:02x}", uint8_t(byte));
  return out;
}
hash32 hash_of(const bytes& b) {
  hash32 h{};
  EXPECT_EQ(b.size(), h.size());
  std::ranges::copy(b, h.begin());
  return h;
}
uint64_t number(element from, const char* key) { return uint64_t(from[key]); }
std::string text(element from, const char* key) { return std::string(std::string_view(from[key])); }

/// The request that all in a file is about.
struct seal_case {
  std::vector<node_key> nodes;
  bytes plain, token, message;
  uint32_t epoch = 0, chunk_bytes = 0;  // of its answer

  explicit seal_case(element root) {
    for (element n : root["nodes"]) nodes.push_back(node_of(n));
    element seal = root["seal"];
    plain = hex_of(seal, "plain");
    token = hex_of(seal, "token");
    message = hex_of(seal, "message");
    epoch = uint32_t(number(seal, "epoch"));
    chunk_bytes = uint32_t(number(root["answer"], "chunk_bytes"));
  }
  hash32 token_hash() const { return sha256({token}); }
  sealed_message parsed() const { return *sealed_message::parse(message); }
  hash32 binding() const { return parsed().binding(token_hash()); }
  result<opened_request> open_at(const node_key& at, bytes_view sealed) const {
    return open_request(at, sealed, epoch, token_hash(), std::pmr::get_default_resource());
  }
  /// As the client has them: who may answer, and what opens it.
  answer_opener answer() const {
    std::vector<answer_candidate> all;
    auto m = parsed();
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto to = hpke_receiver::make(m.suite, nodes[i].seal_key(), m.entries[i].enc,
                                    m.info(m.entries[i].node_id));
      all.push_back({nodes[i].published(), copy_of(m.entries[i].enc),
                     to->keys().export_key(as_bytes(answer_label), answer_nonce_bytes(m.suite))});
    }
    return answer_opener(std::move(all), {token_hash(), sha256({message}), epoch, chunk_bytes});
  }

  static node_key node_of(element n) {
    return *node_key::from({}, *hpke_key::from_private(0x20, hex_of(n, "seal_private")),
                           *signing_key::from_private(hex_of(n, "sign_private")));
  }
};

receipt receipt_of(element from, const seal_case& c) {
  return {.token_hash = c.token_hash(),
          .request_hash = sha256({c.message}),
          .release = hash_of(hex_of(from, "release")),
          .epoch = c.epoch,
          .arenas = uint32_t(number(from, "arenas")),
          .bytes_wiped = number(from, "bytes_wiped")};
}

class PrivateVectors : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto path = fs::path(places::test_data) / GetParam();
    ASSERT_EQ(parser_.load(path.string()).get(root_), simdjson::SUCCESS) << path;
  }
  simdjson::dom::parser parser_;
  element root_;
};

TEST_P(PrivateVectors, NodesHaveTheirIds) {
  seal_case c(root_);
  size_t i = 0;
  for (element n : root_["nodes"]) {
    EXPECT_EQ(c.nodes[i].published().to_bytes(), hex_of(n, "public"));
    EXPECT_EQ(hex(c.nodes[i++].published().id), text(n, "id"));
  }
  EXPECT_EQ(i, 2u);
}

TEST_P(PrivateVectors, SealsOpenForEachNodeAndNotWhenChanged) {
  seal_case c(root_);
  EXPECT_EQ(hex(c.binding()), text(root_["seal"], "binding"));
  for (const node_key& n : c.nodes) {
    auto opened = c.open_at(n, c.message);
    ASSERT_TRUE(opened) << opened.why().text;
    EXPECT_EQ(text_bytes(opened->plain), c.plain);
    EXPECT_EQ(opened->request_hash, sha256({c.message}));
  }
  const size_t other = 12 + 96 + 64;  // what is wrapped for the second, the first can't check
  for (size_t at = 0; at < c.message.size(); ++at)
    EXPECT_EQ(bool(c.open_at(c.nodes[0], flipped(c.message, at))), at >= other && at < other + 32)
        << at;
}

TEST_P(PrivateVectors, AnswersOpenWithTheirReceipts) {
  seal_case c(root_);
  element from = root_["answer"];
  const bytes content = hex_of(from, "content");
  auto opener = c.answer();
  std::pmr::string plain;
  auto pushed = opener.push(content, plain);
  ASSERT_TRUE(pushed) << pushed.why().text;
  auto read = opener.finish();
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(hex(as_bytes(plain)), text(from, "plain"));
  EXPECT_EQ(*read, receipt_of(from, c));
  EXPECT_EQ(*opener.node(), c.nodes[number(from, "node")].published());
  for (size_t at = 0; at < content.size(); ++at) {
    auto again = c.answer();
    EXPECT_FALSE(again.push(flipped(content, at), plain) && again.finish()) << at;
  }
}

TEST_P(PrivateVectors, RefusalsVerify) {
  seal_case c(root_);
  element from = root_["refusal"];
  const auto sigpk = c.nodes[number(from, "node")].published().sigpk;
  const bytes made = hex_of(from, "bytes");
  auto read = verify_refusal(made, sigpk, c.binding());
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(uint64_t(read->reason), number(from, "reason"));
  EXPECT_EQ(read->epoch, c.epoch);
  for (size_t at = 0; at < made.size(); ++at)
    EXPECT_FALSE(verify_refusal(flipped(made, at), sigpk, c.binding())) << at;
}

TEST_P(PrivateVectors, RostersAreTheLoggedOnes) {
  element from = root_["roster"];
  const bytes whole = hex_of(from, "bytes");
  auto entry = log_entry::from_bytes(hex_of(from, "entry"));
  ASSERT_TRUE(entry) << entry.why().text;
  auto read = verify_roster(whole, *entry);
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(read->to_bytes(), whole);
  EXPECT_EQ(hex(read->root()), text(from, "root"));
  EXPECT_EQ(read->leaves.size(), 3u);
  for (size_t at = 0; at < whole.size(); ++at)
    EXPECT_FALSE(verify_roster(flipped(whole, at), *entry)) << at;
}

TEST_P(PrivateVectors, HeadsAreSignedOverTheirEntries) {
  element from = root_["log"];
  std::vector<note_key> witnesses;
  for (element w : from["witnesses"]) witnesses.push_back(*note_key::parse(std::string_view(w)));
  auto trusted = note_trust::make(*note_key::parse(text(from, "key")), witnesses, 2);
  ASSERT_TRUE(trusted) << trusted.why().text;
  const std::string note = text(from, "note");
  auto head = signed_head::parse(note);
  ASSERT_TRUE(head) << head.why().text;
  auto times = verify_head(*head, *trusted);
  ASSERT_TRUE(times) << times.why().text;
  EXPECT_EQ(*times, (std::vector<uint64_t>{number(from, "first_time"), number(from, "last_time")}));
  merkle_frontier tree;
  for (element e : from["entries"]) tree.append(leaf_hash(from_hex(std::string_view(e))));
  EXPECT_EQ(tree.size(), head->head.size);
  EXPECT_EQ(tree.root(), head->head.root);
  for (size_t at = 0; at < note.size(); ++at) {
    auto other = signed_head::parse(as_text(flipped(text_bytes(note), at)));
    EXPECT_FALSE(other && verify_head(*other, *trusted)) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PrivateVectors,
                         ::testing::Values("private_vectors.json", "private_vectors_js.json"));

/// A file of ours, but for ephemeral keys and nonces the same each time.
struct written {
  std::vector<node_key> nodes;
  std::string json = "{\n";
  hash32 binding{}, release{};
  const bytes token = random_bytes(354, 7);
  const uint32_t epoch = 41, chunk_bytes = 256;

  written() {
    add_nodes();
    add_seal();
    add_refusal();
    add_roster();
    add_log();
  }
  void add(const char* name, const std::string& value, bool last = false) {
    json += fmt::format("\"{}\": {}{}\n", name, value, last ? "}" : ",");
  }

  void add_nodes() {
    std::vector<std::string> all;
    for (uint32_t i = 0; i < 2; ++i) {
      const bytes seal = random_bytes(32, 70 + i), sign = random_bytes(32, 80 + i);
      nodes.push_back(*node_key::from({}, *hpke_key::from_private(0x20, seal),
                                      *signing_key::from_private(sign)));
      const auto& p = nodes.back().published();
      all.push_back(fmt::format(
          R"({{"seal_private": "{}", "sign_private": "{}",{} "public": "{}",{} "id": "{}"}})",
          hex(seal), hex(sign), '\n', hex(p.to_bytes()), '\n', hex(p.id)));
    }
    add("nodes", fmt::format("[{}]", fmt::join(all, ",\n")));
  }

  void add_seal() {
    const bytes plain = text_bytes("what is asked");
    const hash32 paid = sha256({token});
    const std::vector to = {nodes[0].published(), nodes[1].published()};
    auto sealed = seal_request(plain, to, epoch, paid);
    binding = sealed_message::parse(sealed->message)->binding(paid);
    add("seal",
        fmt::format(R"({{"epoch": {}, "plain": "{}",{} "token": "{}",{} "binding": "{}",{} )"
                    R"("message": "{}"}})",
                    epoch, hex(plain), '\n', hex(token), '\n', hex(binding), '\n',
                    hex(sealed->message)));
    add_answer(sealed->message, paid);
  }

  void add_answer(const bytes& message, const hash32& paid) {
    auto opened =
        open_request(nodes[1], message, epoch, paid, std::pmr::get_default_resource(), chunk_bytes);
    const receipt said{.token_hash = paid,
                       .request_hash = opened->request_hash,
                       .release = sha256({as_bytes("release")}),
                       .epoch = epoch,
                       .arenas = 2,
                       .bytes_wiped = (uint64_t{1} << 33) + 5};
    auto signed_one = sign_receipt(nodes[1], said);
    bytes content = copy_of(opened->answer.first());
    check(bool(opened->answer.seal(as_bytes("one piece, "), false, content)));
    check(bool(opened->answer.seal(as_bytes("and another"), false, content)));
    check(bool(opened->answer.seal({}, false, content)));
    check(bool(opened->answer.seal(signed_one, true, content)));
    add("answer",
        fmt::format(
            R"({{"node": 1, "chunk_bytes": {}, "plain": "{}", "release": "{}",{} "arenas": {}, )"
            R"("bytes_wiped": {},{} "content": "{}"}})",
            chunk_bytes, hex(as_bytes("one piece, and another")), hex(said.release), '\n',
            said.arenas, said.bytes_wiped, '\n', hex(content)));
  }

  void add_refusal() {
    auto made = sign_refusal(nodes[0], {binding, epoch, refusal_reason::full});
    add("refusal", fmt::format(R"({{"node": 0, "reason": 5, "bytes": "{}"}})", hex(made)));
  }

  void add_roster() {
    const roster r = three_nodes();
    auto entry = r.summary(t0).to_entry(r.epoch);
    add("roster", fmt::format(R"({{"root": "{}", "entry": "{}",{} "bytes": "{}"}})", hex(r.root()),
                              hex(entry.to_bytes()), '\n', hex(r.to_bytes())));
  }

  void add_log() {
    free_log log;
    for (uint32_t i = 0; i < 7; ++i) log.add(sample(log_kind::roster, 1 + i));
    auto note = log.note(1, t0);
    note.signatures.push_back(cosign_head(witness_signer(1), note.head, t0 + 9));
    std::vector<std::string> entries, lines;
    for (const bytes& e : log.entries) entries.push_back('"' + hex(e) + '"');
    std::string escaped;
    for (char c : note.text()) escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
    add("log",
        fmt::format(R"({{"key": "{}", "witnesses": ["{}", "{}"],{} "first_time": {}, )"
                    R"("last_time": {},{} "note": "{}",{} "entries": [{}]}})",
                    log_signer().key().text(), witness_signer(0).key().text(),
                    witness_signer(1).key().text(), '\n', t0, t0 + 9, '\n', escaped, '\n',
                    fmt::join(entries, ", ")),
        true);
  }
};

/// All but what is drawn: ephemeral keys, the body's key and the answer's nonce.
TEST(PrivateVectorsOfOurs, AreWhatWeWrite) {
  const auto path = fs::path(places::test_data) / "private_vectors.json";
  const written now;
  const char* asked = std::getenv("LETHE_WRITE_VECTORS");
  if (asked && *asked == '1') put_file(path, as_bytes(now.json));
  simdjson::dom::parser parsers[2];
  element kept, made;
  ASSERT_EQ(parsers[0].load(path.string()).get(kept), simdjson::SUCCESS);
  ASSERT_EQ(parsers[1].parse(now.json).get(made), simdjson::SUCCESS);
  for (const char* name : {"nodes", "roster", "log"})
    EXPECT_EQ(simdjson::minify(kept[name]), simdjson::minify(made[name])) << name;
  EXPECT_EQ(hex_of(kept["seal"], "message").size(), hex_of(made["seal"], "message").size());
  EXPECT_EQ(hex_of(kept["answer"], "content").size(), hex_of(made["answer"], "content").size());
}

}  // namespace
}  // namespace lethe
