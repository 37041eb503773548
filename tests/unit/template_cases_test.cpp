#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "template_render.hpp"
#include "tests/places.hpp"

namespace {
std::atomic<bool> counting = false;
std::atomic<size_t> heap_allocations = 0;
}  // namespace

// Only this program's: counts what a rendering takes from the heap.
[[gnu::noinline]] void* operator new(size_t size) {
  if (counting) ++heap_allocations;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept {
  if (counting) ++heap_allocations;
  return std::malloc(n ? n : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace lethe {
namespace {

struct one_case {
  std::string name, source, tools, variables, wanted;
  bool refused = false;
};

struct case_file {
  std::string messages;
  std::vector<one_case> cases;
  std::time_t now = 0;
};

/// Members of `more` hide those of `base`; both are JSON objects, `more` may be empty.
std::string merged(std::string base, const std::string& more) {
  if (more.size() <= 2) return base;
  base.back() = ',';
  return base + more.substr(1);
}

case_file read_cases() {
  simdjson::dom::parser parser;
  const auto file = parser.load(std::string(places::test_data) + "/template_cases.json");
  case_file all{.messages = json_text(file["messages"]), .now = int64_t(file["now"])};
  for (const auto c : file["cases"].get_array()) {
    one_case one{.name = string_of(c["name"]), .source = string_of(c["template"])};
    one.tools = json_text(c["tools"].error() ? file["tools"] : c["tools"]);
    one.variables = merged(json_text(file["variables"]), json_text(c["variables"]));
    one.wanted = string_of(c["output"]);
    one.refused = c["output"].error();
    all.cases.push_back(std::move(one));
  }
  return all;
}

render_input input_of(const case_file& file, const one_case& c) {
  return {.messages = file.messages,
          .tools = c.tools,
          .variables = c.variables,
          .bos_token = "<s>",
          .eos_token = "</s>",
          .now = file.now};
}

TEST(Template, PrintsWhatJinja2Prints) {
  const case_file file = read_cases();
  ASSERT_GT(file.cases.size(), 700u);
  for (const one_case& c : file.cases) {
    const outcome got = render(c.source, input_of(file, c));
    if (c.refused) {
      EXPECT_TRUE(got.why.starts_with("chat template")) << c.name << ": " << got.text;
    } else {
      EXPECT_EQ(got.text, c.wanted) << c.name << ": " << got.why;
    }
  }
}

TEST(Template, TakesNothingOfAConversationFromTheHeap) {
  const case_file file = read_cases();
  std::vector<std::byte> room(size_t{64} << 20);
  size_t rendered = 0;
  for (const one_case& c : file.cases) {
    const auto compiled = chat_template::compile(c.source);
    if (!compiled || c.refused) continue;
    const render_input input = input_of(file, c);
    std::pmr::monotonic_buffer_resource memory(room.data(), room.size(),
                                               std::pmr::null_memory_resource());
    std::pmr::set_default_resource(std::pmr::null_memory_resource());
    heap_allocations = 0;
    counting = true;
    const auto prompt = compiled->render(input, &memory);
    counting = false;
    std::pmr::set_default_resource(nullptr);
    EXPECT_TRUE(bool(prompt)) << c.name << ": " << prompt.why().text;
    EXPECT_EQ(heap_allocations, 0u) << c.name;
    ++rendered;
  }
  EXPECT_GT(rendered, 600u);
}

}  // namespace
}  // namespace lethe
