#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/base64.hpp"
#include "runtime/base/durable_file.hpp"
#include "runtime/base/locked_file.hpp"
#include "runtime/base/mapped_file.hpp"

namespace lethe {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "lethe-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    here_ = name;
  }
  void TearDown() override { fs::remove_all(here_); }
  fs::path here_;
};

TEST_F(Files, ADurableFileIsReplacedAsAWhole) {
  const fs::path path = here_ / "state";
  ASSERT_TRUE(write_durable(path, as_bytes("one"), 0600));
  EXPECT_EQ(*read_text(path, 10), "one");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  std::ofstream(path.string() + ".partial") << "left by a crash, and longer";
  ASSERT_TRUE(write_durable(path, as_bytes("two")));
  EXPECT_EQ(*read_text(path, 10), "two");
  EXPECT_FALSE(fs::exists(path.string() + ".partial"));
  ASSERT_TRUE(write_durable(path, {}));
  EXPECT_EQ(*read_text(path, 10), "");
}

TEST_F(Files, AFailedWriteLeavesTheOldFile) {
  const fs::path path = here_ / "state";
  ASSERT_TRUE(write_durable(path, as_bytes("one")));
  fs::create_directories(path.string() + ".partial/in the way");
  EXPECT_FALSE(write_durable(path, as_bytes("two")));
  EXPECT_EQ(*read_text(path, 10), "one");
  EXPECT_FALSE(write_durable(here_ / "no folder" / "state", as_bytes("x")));
  EXPECT_FALSE(sync_folder(here_ / "no folder"));
}

TEST_F(Files, AFolderIsMadeWithThoseAboveIt) {
  const fs::path folder = here_ / "a" / "b";
  for (const fs::path& same : {folder, folder, folder / "", folder / ".." / "b"})
    EXPECT_TRUE(make_folder(same, 0700)) << same;
  struct stat info {};
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(make_folder({}));
  ASSERT_TRUE(write_durable(here_ / "file", as_bytes("x")));
  EXPECT_FALSE(make_folder(here_ / "file"));
  EXPECT_FALSE(make_folder(here_ / "file" / "below"));
}

TEST_F(Files, ALockedFileHasOneOwner) {
  const fs::path path = here_ / "lock";
  auto first = locked_file::open(path);
  ASSERT_TRUE(first);
  EXPECT_FALSE(locked_file::open(path));
  locked_file moved = *std::move(first);
  EXPECT_FALSE(locked_file::open(path));
  { locked_file gone = std::move(moved); }
  EXPECT_TRUE(locked_file::open(path));
}

TEST(Base64, IsThatOfTheRfc) {
  const std::pair<const char*, const char*> vectors[] = {// RFC 4648, section 10
                                                         {"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (auto [plain, text] : vectors) {
    EXPECT_EQ(to_base64(as_bytes(plain)), text);
    auto back = from_base64(text);
    ASSERT_TRUE(back);
    EXPECT_EQ(as_text(*back), plain);
  }
  EXPECT_EQ(to_base64(as_bytes("\xfb\xff\xfe")), "+//+");
}

TEST(Base64, HasOneForm) {
  for (const char* text : {"Zg", "Zg=", "Zh==", "Zm9=", "Zg==\n",
                           "Z===", "====", "Zm8=Zm8=", "Z m8", "-_-_", "=Zm8", "Zg==Zg=="})
    EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace lethe
