// No message carries what a user said in the clear: every text or data field of every schema says
// that it is public or sealed.
#include <capnp/schema-parser.h>
#include <gtest/gtest.h>
#include <kj/filesystem.h>

#include <filesystem>
#include <fstream>

#include "runtime/config/annotations.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

struct found_fields {
  size_t marked = 0;
  std::vector<std::string> unmarked;
};

/// Text or data, also as elements of lists.
bool holds_bytes(capnp::Type type) {
  while (type.isList()) type = type.asList().getElementType();
  return type.isText() || type.isData() || type.isAnyPointer();
}

void look_at(capnp::StructSchema schema, found_fields& found) {
  for (auto field : schema.getFields()) {
    if (field.getProto().isGroup()) look_at(field.getType().asStruct(), found);
    if (!field.getProto().isSlot() || !holds_bytes(field.getType())) continue;
    if (annotations::has(field, annotations::public_id) ||
        annotations::has(field, annotations::sealed_id))
      ++found.marked;
    else
      found.unmarked.push_back(std::string(schema.getShortDisplayName().cStr()) + "." +
                               field.getProto().getName().cStr());
  }
}

void walk(capnp::ParsedSchema schema, found_fields& found) {
  if (schema.getProto().isStruct()) look_at(schema.asStruct(), found);
  for (auto nested : schema.getAllNested()) walk(nested, found);
}

found_fields fields_of(const std::filesystem::path& folder) {
  found_fields found;
  auto disk = kj::newDiskFilesystem();
  auto open = [&disk](const std::string& p) {
    return disk->getRoot().openSubdir(disk->getCurrentPath().evalNative(p));
  };
  auto own = open(folder.string()), system = open("/usr/include");
  const kj::ReadableDirectory* imports[] = {system.get()};
  capnp::SchemaParser parser;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".capnp")
      walk(parser.parseFromDirectory(*own, kj::Path(file.path().filename().string()),
                                     kj::arrayPtr(imports, 1)),
           found);
  return found;
}

TEST(Schemas, EveryTextIsPublicOrSealed) {
  auto found = fields_of(std::string(places::source) + "/schemas");
  for (const auto& field : found.unmarked)
    ADD_FAILURE() << field << ": mark it $public or $sealed, or don't send it";
  EXPECT_GT(found.marked, 8u);
}

// The negative control: the same walk finds a field that nobody marked.
TEST(Schemas, TheSameWalkFindsAFieldThatIsNotMarked) {
  std::string name = (std::filesystem::temp_directory_path() / "lethe-schema-XXXXXX").string();
  std::filesystem::path folder = ::mkdtemp(name.data());
  std::ofstream(folder / "leak.capnp") << "@0x8f2d1b6c3a4e5f70;\n"
                                          "struct Leak { id @0 :UInt64; in :group {\n"
                                          "  prompt @1 :List(Text); } }\n";
  auto found = fields_of(folder);
  std::filesystem::remove_all(folder);
  ASSERT_EQ(found.unmarked.size(), 1u);
}

}  // namespace
}  // namespace lethe
