#include <gtest/gtest.h>

#include "runtime/base/mapped_file.hpp"
#include "template_render.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

std::filesystem::path folder() {
  const char* set = std::getenv("LETHE_VECTORS");
  return std::filesystem::path(set ? set : places::vectors) / "chat-templates";
}

void expect_case(const std::string& file, const chat_template& compiled, const std::string& bos,
                 const std::string& eos, simdjson::dom::element c) {
  const std::string messages = json_text(c["messages"]);
  const render_input input{.messages = messages,
                           .variables = R"({"date_string":"26 Jul 2024"})",
                           .bos_token = bos,
                           .eos_token = eos,
                           .add_generation_prompt = bool(c["add_generation_prompt"])};
  std::pmr::monotonic_buffer_resource memory;
  const auto prompt = compiled.render(input, &memory);
  const std::string where = file + ", " + string_of(c["name"]);
  if (c["error"].error()) {
    ASSERT_TRUE(bool(prompt)) << where << ": " << prompt.why().text;
    EXPECT_EQ(std::string_view(*prompt), string_of(c["output"])) << where;
  } else {
    ASSERT_FALSE(bool(prompt)) << where;
    EXPECT_NE(prompt.why().text.find(string_of(c["error"])), std::string::npos) << where;
  }
}

TEST(Template, RendersPublishedTemplatesAsTheirReferenceDoes) {
  if (!std::filesystem::exists(folder())) {
    const char* ci = std::getenv("CI");
    if (ci && std::string_view(ci) == "true") FAIL() << "vectors are missing";
    GTEST_SKIP() << "vectors chat-templates are missing; set LETHE_VECTORS";
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() != ".json") continue;
    simdjson::dom::parser parser;
    const simdjson::dom::element file = parser.load(entry.path().string());
    const auto source = read_text(folder() / string_of(file["template"]), 1 << 20);
    ASSERT_TRUE(bool(source));
    const auto compiled = chat_template::compile(*source);
    ASSERT_TRUE(bool(compiled)) << entry.path() << ": " << compiled.why().text;
    for (const auto c : file["cases"].get_array()) {
      expect_case(entry.path().filename(), *compiled, string_of(file["bos_token"]),
                  string_of(file["eos_token"]), c);
    }
    ++files;
  }
  EXPECT_GE(files, 10u);
}

}  // namespace
}  // namespace lethe
