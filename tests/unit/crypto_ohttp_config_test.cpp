#include "runtime/crypto/ohttp_config.hpp"

#include "crypto_samples.hpp"

namespace lethe {
namespace {

using namespace test;

ohttp_config key_of(uint8_t id, size_t algorithms = 1) {
  return {.key_id = id,
          .pk = random_bytes(32, id),
          .algorithms = std::vector<ohttp_config::symmetric>(algorithms)};
}

bytes list_of(std::initializer_list<bytes_view> entries) {
  bytes out;
  for (bytes_view e : entries) {
    const bytes length{std::byte(uint8_t(e.size() >> 8)), std::byte(uint8_t(e.size()))};
    out = joined({out, length, e});
  }
  return out;
}

std::string why_not(bytes_view list) {
  auto read = read_ohttp_keys(list);
  return read ? "" : read.why().text;
}

/// An entry of X-Wing, whose key no code here has the length of.
bytes entry_of_another_kem(uint8_t id) {
  return joined({bytes{std::byte{id}}, from_hex("647a"), bytes(1216), from_hex("000400010001")});
}

TEST(OhttpConfig, ReadsWhatItWrites) {
  for (size_t algorithms : {1, 2, 3, 100}) {
    const ohttp_config key = key_of(200, algorithms);
    auto read = ohttp_config::from_bytes(key.to_bytes());
    ASSERT_TRUE(read) << read.why().text;
    EXPECT_EQ(*read, key);
  }
  const std::vector<ohttp_config> keys = {key_of(0), key_of(255, 3), key_of(7)};
  auto read = read_ohttp_keys(write_ohttp_keys(keys));
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(*read, keys);
}

TEST(OhttpConfig, EveryCutAndEveryExtraByteIsRefused) {
  const bytes one = key_of(1, 2).to_bytes();
  for (size_t n = 0; n < one.size(); ++n)
    EXPECT_FALSE(ohttp_config::from_bytes(bytes_view(one).first(n))) << n;
  EXPECT_FALSE(ohttp_config::from_bytes(joined({one, bytes(1)})));
  EXPECT_FALSE(ohttp_config::from_bytes(joined({one, bytes(4)})));
  const bytes list = list_of({one, key_of(2).to_bytes()});
  for (size_t n = 0; n < list.size(); ++n) {
    const bool first_alone = n == one.size() + 2;
    EXPECT_EQ(why_not(bytes_view(list).first(n)) == "", first_alone) << n;
  }
  for (size_t more : {1, 2, 3}) EXPECT_NE(why_not(joined({list, bytes(more)})), "") << more;
}

TEST(OhttpConfig, OneWrongEntryRefusesAll) {
  const bytes good = key_of(1).to_bytes();
  bytes no_algorithms = key_of(2).to_bytes(), odd = no_algorithms, beyond = no_algorithms;
  no_algorithms.resize(no_algorithms.size() - 4);
  no_algorithms.back() = std::byte{0};
  odd.resize(odd.size() - 1);
  odd[36] = std::byte{3};
  beyond[36] = std::byte{8};
  for (const bytes& wrong : {no_algorithms, odd, beyond, bytes{}, bytes(9)}) {
    EXPECT_EQ(why_not(list_of({good})), "");
    EXPECT_NE(why_not(list_of({good, wrong})), "") << wrong.size();
    EXPECT_NE(why_not(list_of({wrong, good})), "") << wrong.size();
  }
}

TEST(OhttpConfig, AKemThatIsNotKnownIsPassedOverByItsLength) {
  const bytes other = entry_of_another_kem(1), ours = key_of(2).to_bytes();
  for (const bytes& list : {list_of({other, ours}), list_of({ours, other})}) {
    auto read = read_ohttp_keys(list);
    ASSERT_TRUE(read) << read.why().text;
    ASSERT_EQ(read->size(), 1u);
    EXPECT_EQ(read->front().to_bytes(), ours);
  }
  EXPECT_FALSE(ohttp_config::from_bytes(other));
  EXPECT_NE(why_not(list_of({other})), "") << "nothing that could be used";
  bytes_view shortest = bytes_view(other).first(10);
  EXPECT_EQ(why_not(list_of({ours, shortest})), "");
  EXPECT_NE(why_not(list_of({ours, shortest.first(9)})), "") << "too short for any key";
}

TEST(OhttpConfig, AnIdIsThereOnce) {
  EXPECT_NE(why_not(list_of({key_of(1).to_bytes(), key_of(1, 2).to_bytes()})), "");
  EXPECT_NE(why_not(list_of({key_of(1).to_bytes(), entry_of_another_kem(1)})), "");
  EXPECT_EQ(why_not(list_of({key_of(1).to_bytes(), key_of(2).to_bytes()})), "");
}

TEST(OhttpConfig, AnEmptyListIsRefused) { EXPECT_NE(why_not({}), ""); }

TEST(OhttpConfig, TheListHasALimit) {
  // 40 bytes and 4 for each pair of algorithms, with the length in front.
  const size_t most = (limits::ohttp_keys_bytes_max - 40 - 2) / 4;
  auto of_size = [](size_t size) { return list_of({key_of(1, (size - 39) / 4).to_bytes()}); };
  const bytes below = of_size(4 * most + 35);
  EXPECT_EQ(why_not(below), "");
  bytes at = list_of({key_of(1, most - 12).to_bytes()});
  const size_t left = limits::ohttp_keys_bytes_max - at.size() - 2;
  at = joined({at, list_of({bytes_view(entry_of_another_kem(9)).first(left)})});
  EXPECT_EQ(at.size(), limits::ohttp_keys_bytes_max);
  EXPECT_EQ(why_not(at), "");
  EXPECT_NE(why_not(joined({at, bytes(1)})).find("are accepted"), std::string::npos);
}

TEST(OhttpConfig, TheSuiteIsTheFirstThatIsKnown) {
  ohttp_config key = key_of(1);
  key.algorithms = {{1, 0xffff}, {2, 1}, {1, 3}, {1, 1}};
  ASSERT_TRUE(key.suite());
  EXPECT_EQ(*key.suite(), (hpke_suite{.aead = 3}));
  key.algorithms.resize(2);
  EXPECT_FALSE(key.suite());
}

}  // namespace
}  // namespace lethe
