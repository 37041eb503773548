#include "runtime/log/signed_head.hpp"

#include "runtime/base/base64.hpp"
#include "runtime/log/log_limits.hpp"
#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

free_log some_log() {
  free_log log;
  log.add(sample(log_kind::release, 1));
  return log;
}

TEST(NoteKey, TextFormsAreReadAsTheyAreWritten) {
  const note_key key = log_signer().key();
  EXPECT_EQ(*note_key::parse(key.text()), key) << key.text();
  auto secret = make_private_note_key("example.com/log", note_algorithm::cosignature);
  ASSERT_TRUE(secret);
  auto signer = note_signer::parse(secret->text);
  ASSERT_TRUE(signer);
  EXPECT_EQ(signer->key().name(), "example.com/log");
  EXPECT_EQ(signer->key().algorithm(), note_algorithm::cosignature);
  EXPECT_FALSE(note_key::parse(secret->text));
}

/// The example of golang.org/x/mod/sumdb/note.
TEST(NoteKey, ThePublishedExampleVerifies) {
  auto key = note_key::parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->id(), 0xc74f20a3u);
  auto signer = note_signer::parse(
      "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz");
  ASSERT_TRUE(signer);
  EXPECT_EQ(signer->key(), *key);
  constexpr std::string_view text =
      "If you think cryptography is the answer to your problem,\n"
      "then you don't know what your problem is.\n";
  auto lines = parse_signatures(
      "\u2014 PeterNeumann "
      "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
      "\n");
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->at(0).key_id, key->id());
  EXPECT_TRUE(verify_signature(key->public_key(), as_bytes(text), lines->at(0).bytes));
  const signature made = signer->sign(as_bytes(text));
  EXPECT_EQ(lines->at(0).bytes, bytes(made.begin(), made.end()));
}

TEST(NoteKey, AnAlteredTextIsRefused) {
  const std::string text = log_signer().key().text();
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(note_key::parse(text.substr(0, i))) << i;
    std::string other = text;
    other[i] = other[i] == 'b' ? 'c' : 'b';
    EXPECT_FALSE(note_key::parse(other)) << other;
  }
}

TEST(NoteKey, NamesHaveBounds) {
  auto named = [](std::string name) {
    return bool(note_key::make(std::move(name), note_algorithm::ed25519, {}));
  };
  EXPECT_TRUE(named(std::string(limits::log_name_bytes_max, 'a')));
  EXPECT_FALSE(named(std::string(limits::log_name_bytes_max + 1, 'a')));
  for (const char* bad : {"", "a b", "a+b", "a\nb", "\u00e4"}) EXPECT_FALSE(named(bad)) << bad;
  EXPECT_FALSE(note_key::make("a", note_algorithm(6), {}));
}

TEST(Head, IsReadAsItIsWrittenAndNoOtherWay) {
  const signed_head note = some_log().note(2, t0);
  const std::string text = note.text();
  auto again = signed_head::parse(text);
  ASSERT_TRUE(again) << again.why().text;
  EXPECT_EQ(*again, note);
  for (size_t i = 0; i < text.size(); ++i) {
    auto cut = signed_head::parse(text.substr(0, i));
    // At a line's end fewer signatures are left, and that is a note.
    EXPECT_TRUE(!cut || (text[i - 1] == '\n' && cut->signatures.size() < 3)) << i;
    std::string other = text;
    other[i] ^= 1;
    auto read = signed_head::parse(other);
    EXPECT_TRUE(!read || read->text() == other) << i;
    EXPECT_FALSE(read && verify_head(*read, trust(2, 2))) << i;
  }
}

TEST(Head, OddFormsAreRefused) {
  const tree_head head = some_log().head();
  const std::string root = to_base64(head.root), good = head.text();
  ASSERT_TRUE(tree_head::parse(good));
  for (const std::string& text :
       {"log.test/1\n01\n" + root + "\n", "log.test/1\n+1\n" + root + "\n",
        "log.test/1\n\n" + root + "\n", "log.test/1\n18446744073709551616\n" + root + "\n",
        "\n1\n" + root + "\n", "a b\n1\n" + root + "\n", good + "extension\n", good + "\n",
        "log.test/1\n1\n" + root.substr(0, 40) + "\n", "log.test/1\r\n1\n" + root + "\n"})
    EXPECT_FALSE(tree_head::parse(text)) << text;
}

TEST(Head, NotesHaveBounds) {
  const signed_head good = some_log().note(0, 0);
  auto with = [&](size_t signatures, size_t size) {
    signed_head n = good;
    n.signatures.assign(signatures, {"a", 1, bytes(size)});
    return bool(signed_head::parse(n.text()));
  };
  EXPECT_TRUE(with(limits::log_signatures_max, 64));
  EXPECT_FALSE(with(limits::log_signatures_max + 1, 64));
  EXPECT_TRUE(with(1, limits::log_signature_bytes_max));
  EXPECT_FALSE(with(1, limits::log_signature_bytes_max + 1));
  EXPECT_FALSE(with(1, 0));
  EXPECT_FALSE(with(0, 0));
  EXPECT_FALSE(with(4, limits::log_signature_bytes_max));  // the whole note is too long
}

TEST(Trust, TheQuorumIsOfDistinctWitnesses) {
  const free_log log = some_log();
  EXPECT_TRUE(verify_head(log.note(2, t0), trust(3, 2)));
  EXPECT_TRUE(refused(verify_head(log.note(1, t0), trust(3, 2)), "log: no quorum: 1 of 3"));
  signed_head twice = log.note(1, t0);
  twice.signatures.push_back(cosign_head(witness_signer(0), twice.head, t0 + 1));
  EXPECT_TRUE(refused(verify_head(twice, trust(3, 2)), "log: no quorum"));
  signed_head stranger = log.note(1, t0);
  stranger.signatures.push_back(cosign_head(witness_signer(7), stranger.head, t0));
  EXPECT_TRUE(refused(verify_head(stranger, trust(3, 2)), "log: no quorum"));
  EXPECT_EQ(*verify_head(stranger, trust(3, 1)), std::vector<uint64_t>{t0});
}

TEST(Trust, WrongSignaturesAreRefused) {
  const free_log log = some_log();
  signed_head other_time = log.note(2, t0);
  other_time.signatures[2].bytes[7] ^= std::byte{1};
  EXPECT_TRUE(refused(verify_head(other_time, trust(3, 1)), "log: bad signature of witness-1"));
  signed_head by_nobody = log.note(2, t0);
  by_nobody.signatures.erase(by_nobody.signatures.begin());
  EXPECT_TRUE(refused(verify_head(by_nobody, trust(3, 1)), "log: bad signature"));
  signed_head grown = log.note(2, t0);
  grown.head.size = 2;
  EXPECT_TRUE(refused(verify_head(grown, trust(3, 1)), "log: bad signature of log.test/1"));
  signed_head foreign = log.note(2, t0);
  foreign.head.origin = "other.test";
  EXPECT_TRUE(refused(verify_head(foreign, trust(3, 1)), "log: another log's head"));
}

TEST(Trust, WitnessesHaveABound) {
  auto of = [](uint32_t count) {
    std::vector<note_key> keys;
    for (uint32_t n = 0; n < count; ++n) keys.push_back(witness_signer(n).key());
    return bool(note_trust::make(log_signer().key(), keys, count));
  };
  EXPECT_TRUE(of(limits::log_witnesses_max));
  EXPECT_FALSE(of(limits::log_witnesses_max + 1));
}

/// A log's signature over the same text must not pass for a witness's, nor the other way round.
TEST(Trust, AlgorithmsAreNotMixed) {
  EXPECT_FALSE(note_trust::make(witness_signer(0).key(), {}, 0));
  EXPECT_FALSE(note_trust::make(log_signer().key(), {log_signer().key()}, 1));
  EXPECT_FALSE(note_trust::make(log_signer().key(), {witness_signer(0).key()}, 2));
  auto renamed =
      note_key::make("other", note_algorithm::cosignature, witness_signer(0).key().public_key());
  EXPECT_FALSE(note_trust::make(log_signer().key(), {witness_signer(0).key(), *renamed}, 2));
}

}  // namespace
}  // namespace lethe
