#include "runtime/store/key_file.hpp"

#include <sys/stat.h>

#include <fstream>

#include "runtime/base/durable_file.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/store/store_limits.hpp"
#include "store_samples.hpp"

namespace lethe {
namespace {

using namespace test;

constexpr key_length length{32, 40};

result<secret_bytes> make() {
  secret_bytes made(32);
  fill_random(made.bytes());
  return made;
}
result<secret_bytes> make_none() { return fail("made one"); }

class StoreKeyFile : public ::testing::Test {
 protected:
  void put(size_t bytes, mode_t mode = 0600) {
    std::ofstream(path_) << std::string(bytes, 'k');
    ::chmod(path_.c_str(), mode);
  }
  /// "" if it is taken.
  std::string why_not() {
    auto key = keep_key(path_, length, make_none);
    if (key) return "";
    EXPECT_TRUE(key.why().text.starts_with(path_.string())) << key.why().text;
    return key.why().text;
  }

  temporary_folder folder_;
  fs::path path_ = folder_ / "issuer.key";
};

TEST_F(StoreKeyFile, IsMadeOnce) {
  auto made = keep_key(path_, length, make);
  ASSERT_TRUE(made) << made.why().text;
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  auto again = keep_key(path_, length, make_none);
  ASSERT_TRUE(again) << again.why().text;
  EXPECT_TRUE(std::ranges::equal(made->view(), again->view()));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);  // nothing is left over
}

TEST_F(StoreKeyFile, IsNotMadeWhereItCannotBe) {
  auto none = keep_key(path_, length, make_none);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.why().text, "made one");
  EXPECT_FALSE(keep_key(folder_ / "missing/key", length, make));
  EXPECT_FALSE(keep_key(path_, {33, 40}, make));  // of another length than it is read with
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(StoreKeyFile, HasTheRightLength) {
  for (size_t good : {32, 33, 40}) {
    put(good);
    EXPECT_EQ(why_not(), "");
  }
  for (size_t bad : {0, 31, 41}) {
    put(bad);
    EXPECT_NE(why_not().find("a key here has 32 to 40"), std::string::npos);
  }
}

TEST_F(StoreKeyFile, IsReadByItsOwnerOnly) {
  for (mode_t mode : {0640, 0604, 0620, 0601}) {
    put(32, mode);
    EXPECT_NE(why_not().find("others may read"), std::string::npos);
  }
  put(32, 0400);
  EXPECT_EQ(why_not(), "");
}

TEST_F(StoreKeyFile, IsARegularFile) {
  fs::create_directory(path_);
  EXPECT_NE(why_not().find("not a regular file"), std::string::npos);
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(why_not().find("not a regular file"), std::string::npos);
  fs::remove(path_);
  put(32);
  fs::rename(path_, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", path_);
  EXPECT_NE(why_not().find("not a regular file"), std::string::npos);
  fs::remove(folder_ / "elsewhere");
  EXPECT_NE(why_not().find("not a regular file"), std::string::npos);  // no new key through a link
}

TEST_F(StoreKeyFile, ADurableFileReplacesTheOldOneWhole) {
  ASSERT_TRUE(write_durable(path_, as_bytes("one"), 0600));
  ASSERT_TRUE(write_durable(path_, as_bytes("two"), 0640));
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "two");
  auto none = write_durable(folder_ / "missing/file", as_bytes("x"), 0600);
  ASSERT_FALSE(none);
  EXPECT_NE(none.why().text.find("cannot create"), std::string::npos);
}

}  // namespace
}  // namespace lethe
