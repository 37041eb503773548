#include <gtest/gtest.h>

#include <thread>

#include "template_render.hpp"

namespace lethe {
namespace {

constexpr std::string_view secret = R"([{"role":"user","content":"canary"}])";

TEST(TemplateErrors, NameTheLineAndTheConstruct) {
  EXPECT_TRUE(
      render("a\nb\n{{ x | foo }}")
          .why.starts_with("chat template line 3: unknown filter \"foo\"; supported: abs, "));
  EXPECT_TRUE(render("\n{{ x is foo }}")
                  .why.starts_with("chat template line 2: unknown test \"foo\"; supported: "));
  EXPECT_EQ(render("\n\n{{ a.b.c }}").why, "chat template line 3: \"a\" is undefined");
  EXPECT_EQ(render("{% set a = {} %}\n{{ a.b.c }}").why,
            "chat template line 2: \"a.b\" is undefined");
  EXPECT_EQ(render("{% if 1 %}\n{% for i in [1] %}").why,
            "chat template line 2: a block is not closed; expected {% endfor %}");
  EXPECT_EQ(render("{# c\nd #}\n{% include 'x' %}").why,
            "chat template line 3: {% include %} is not supported: a chat template is one text");
  EXPECT_EQ(render("\n{{ lipsum() }}").why, "chat template line 2: lipsum is not supported");
  EXPECT_TRUE(render("{{ [1] | random }}")
                  .why.starts_with("chat template line 1: unknown filter \"random\""));
}

TEST(TemplateErrors, QuoteARefusalOnlyWhereItIsALiteral) {
  const render_input input{.messages = secret};
  EXPECT_EQ(render("{{ raise_exception('roles must ' ~ 'alternate') }}", input).why,
            "chat template line 1: refused: roles must alternate");
  for (const char* source : {"{{ raise_exception('got ' + messages[0].content) }}",
                             "{{ raise_exception('got %s' % messages[0].content) }}",
                             "{{ raise_exception(messages[0].content) }}",
                             "{% set f = raise_exception %}{{ f(messages[0].content) }}",
                             "{% set m = messages[0].content %}{{ raise_exception(m) }}"}) {
    const outcome got = render(source, input);
    EXPECT_NE(got.why.find("refused by the template"), std::string::npos) << source;
  }
}

TEST(TemplateErrors, NeverHoldContent) {
  const render_input input{.messages = secret, .tools = R"({"canary":{"canary":1}})"};
  for (const char* source :
       {"{{ messages[0].content.foo() }}", "{{ messages[0][messages[0].content].x }}",
        "{{ messages[0].content + 1 }}", "{{ messages[0].content | int | round('canar') }}",
        "{{ tools[messages[0].content].foo.bar }}", "{{ '%d' % messages[0].content }}",
        "{{ messages[0].content % 1 }}", "{{ messages[0].content.format() ~ 1.x.y }}",
        "{{ messages | map(messages[0].content) | list }}",
        "{{ [1] | select(messages[0].content) }}",
        "{{ [{}] | map(attribute=messages[0].content ~ '.a.b') | list }}",
        "{{ strftime_now('%' ~ messages[0].content ~ '%Q') }}", "{{ dict(messages[0].content) }}",
        "{% macro f() %}{% endmacro %}{{ f(**{messages[0].content: 1}) }}",
        "{{ ''.strip(**tools) }}", "{{ messages[0].content / 2 }}", "{{ -messages[0].content }}",
        "{{ messages[0].content() }}", "{{ range(messages[0].content) }}"}) {
    const outcome got = render(source, input);
    EXPECT_FALSE(got.why.empty()) << source << ": " << got.text;
    EXPECT_EQ(got.why.find("canar"), std::string::npos) << source << ": " << got.why;
  }
  EXPECT_EQ(render("{{ messages }}", {.messages = R"(["canary)"}).why.find("canary"),
            std::string::npos);
}

TEST(TemplateErrors, WaitForABranchThatIsTaken) {
  EXPECT_EQ(render("{% if false %}{{ 1 | foo }}{% endif %}ok").text, "ok");
  EXPECT_EQ(render("{% if true %}{{ 1 | foo }}{% endif %}ok").why,
            "chat template line 1: unknown filter \"foo\"");
}

TEST(Template, MayBeSharedByThreads) {
  const auto compiled = chat_template::compile(
      "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ n }}{% endif %}{% endmacro %}"
      "{% for m in messages %}{{ f(9) }}{{ m }}{% endfor %}");
  ASSERT_TRUE(bool(compiled));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&compiled] {
      for (int i = 0; i < 200; ++i) {
        std::pmr::monotonic_buffer_resource memory;
        const auto prompt = compiled->render({.messages = "[1,2]"}, &memory);
        ASSERT_TRUE(bool(prompt));
        EXPECT_EQ(*prompt, "12345678911234567892");
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST(Template, GivesVariablesOfTheRequestPrecedence) {
  EXPECT_EQ(render("{{ range }}{{ tools }}{{ documents }}{{ add_generation_prompt }}", {},
                   R"({"range":1,"tools":[2],"unused":3})")
                .text,
            "1[2]NoneTrue");
  EXPECT_FALSE(render("x", {}, "[1]").why.empty());
}

TEST(Template, PrintsTimesInUtc) {
  EXPECT_EQ(
      render("{{ strftime_now('%d %b %Y %H:%M') }} {{ strftime_now('%-d') }}", {.now = 1720000000})
          .text,
      "03 Jul 2024 09:46 3");
}

}  // namespace
}  // namespace lethe
