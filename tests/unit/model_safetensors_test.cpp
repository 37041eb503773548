#include "runtime/model/safetensors.hpp"

#include "model_files.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {
namespace {

using test::append;

result<safetensors_file> parse(const std::string& bytes) {
  return safetensors_file::parse(as_bytes(bytes), "x.safetensors");
}

result<safetensors_file> parse(std::string_view header, size_t data_bytes) {
  static std::string bytes;  // outlives what the caller looks at
  bytes = test::safetensors(header, std::string(data_bytes, 'd'));
  return parse(bytes);
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  auto file = parse(R"({"__metadata__":{"format":"pt"},
    "b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]},
    "a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})",
                    20);
  ASSERT_TRUE(file) << file.why().text;
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "a");
  EXPECT_EQ(file->tensors()[0].type, dtype::bf16);
  EXPECT_EQ(file->tensors()[0].dims, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(file->tensors()[1].data.size(), 8u);
}

TEST(Safetensors, RefusesEveryPrefixOfAFile) {
  std::string bytes =
      test::safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  ASSERT_TRUE(parse(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string prefix(bytes, 0, size);
    EXPECT_FALSE(parse(prefix)) << size;
  }
}

TEST(Safetensors, RefusesAHeaderBeyondItsBounds) {
  for (uint64_t size : {uint64_t{1} << 63, uint64_t{limits::json_file_bytes_max} + 1}) {
    std::string bytes;
    append(bytes, size);
    EXPECT_WHY(parse(bytes + "{}"), "claims a header of");
  }
  std::string bytes;
  append(bytes, uint64_t{limits::json_file_bytes_max});
  EXPECT_WHY(parse(bytes + "{}"), "ends inside its header");
}

TEST(Safetensors, RefusesOverlapsAndHoles) {
  EXPECT_WHY(parse(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
    "b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}})",
                   12),
             "\"b\" overlaps the one before it");
  EXPECT_WHY(parse(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
    "b":{"dtype":"U8","shape":[8],"data_offsets":[9,17]}})",
                   17),
             "\"b\" leaves a hole before it");
  EXPECT_WHY(parse(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 9),
             "1 bytes after the last tensor");
  EXPECT_WHY(parse(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 7),
             "but the file's data has 7 bytes");
}

TEST(Safetensors, RefusesTensorsThatContradictThemselves) {
  EXPECT_WHY(parse(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
             "has 8 bytes; its shape and type say 12");
  EXPECT_WHY(
      parse(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8),
      "is too large");
  EXPECT_WHY(parse(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}})", 8), "integers");
  EXPECT_WHY(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
             "lies at 8 to 0");
  EXPECT_WHY(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8), "two integers");
  EXPECT_WHY(parse(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "dtype is missing");
  EXPECT_WHY(parse(R"({"a":7})", 8), "is no object");
  EXPECT_WHY(parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
    "a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                   8),
             "\"a\" comes twice");
}

TEST(Safetensors, KeepsATensorOfAnUnknownType) {
  auto file = parse(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", 8);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->tensors()[0].type);
  EXPECT_EQ(file->tensors()[0].type_name, "F8_E4M3");
}

TEST(Safetensors, RefusesDeepNesting) {
  EXPECT_WHY(parse(R"({"a":)" + std::string(10000, '['), 0), "not a JSON object");
}

TEST(SafetensorsIndex, ListsFilesOnce) {
  auto index = read_safetensors_index(R"({"weight_map":{"b":"2.st","a":"1.st","c":"1.st"}})", "i");
  ASSERT_TRUE(index) << index.why().text;
  EXPECT_EQ(index->files, (std::vector<std::string>{"1.st", "2.st"}));
  EXPECT_EQ(index->tensors[1], (std::pair<std::string, uint32_t>{"b", 1}));
}

TEST(SafetensorsIndex, RefusesPathsThatLeadElsewhere) {
  for (const char* bad : {"../x", "/etc/passwd", "a/b", "..", ".", "", ".hidden", "a\\\\b",
                          "a\\u0000b", "a\\u001b[2Jb", "a\\nb"}) {
    auto json = R"({"weight_map":{"t":")" + std::string(bad) + R"("}})";
    EXPECT_WHY(read_safetensors_index(json, "i"), "is not the name of a file in the same folder");
  }
  EXPECT_WHY(read_safetensors_index(R"({"weight_map":{"t":7}})", "i"), "must be a file name");
  EXPECT_WHY(read_safetensors_index(R"({"weight_map":{}})", "i"), "weight_map is empty");
  EXPECT_WHY(read_safetensors_index(R"({})", "i"), "weight_map is missing");
  EXPECT_WHY(read_safetensors_index(R"({"weight_map":{"t":"a","t":"b"}})", "i"), "comes twice");
}

}  // namespace
}  // namespace lethe
