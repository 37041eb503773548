#include <gtest/gtest.h>
#include <pthread.h>

#include "runtime/template/bounds.hpp"
#include "template_render.hpp"

namespace lethe {
namespace {

std::string repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

void expect_refused(std::string_view source, std::string_view why) {
  const outcome got = render(source);
  EXPECT_NE(got.why.find(why), std::string::npos)
      << source.substr(0, 80) << ": " << got.why << got.text.substr(0, 80);
}

TEST(TemplateBounds, RefusesValuesThatGrowWithoutEnd) {
  expect_refused("{{ 'a' * 10**9 }}", "repeated beyond");
  expect_refused("{{ [0] * 10**9 }}", "repeated beyond");
  expect_refused("{{ ([0] * 1000) * 100000 }}", "repeated beyond");
  expect_refused("{{ range(10**12) }}", "range of more than");
  expect_refused("{{ '%0999999999d' % 1 }}", "a width above");
  expect_refused("{{ '%.999999999f' % 1 }}", "a precision above");
  expect_refused("{{ '%*d' % (10**9, 1) }}", "a width above");
  expect_refused("{{ '{:999999999}'.format(1) }}", "a width above");
  expect_refused("{{ '{:.9999999999999999999999f}'.format(1) }}", "a precision above");
  expect_refused("{{ 'a\nb' | indent(10**9) }}", "indent");
  expect_refused("{{ [1] | tojson(indent=10**9) }}", "indent");
  expect_refused("{{ 'a'.center(10**9) }}", "a width above");
  expect_refused("{{ 2 ** 100 }}", "64 bits");
  expect_refused("{{ 9223372036854775807 + 1 }}", "64 bits");
  expect_refused("{{ [1] | batch(10**9, 0) | list }}", "out of range");
}

TEST(TemplateBounds, RefusesLoopsThatGrow) {
  const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}";
  const std::string ends = "{% endfor %}{% endfor %}";
  expect_refused(loops + ends, "chat template line 1: ");
  expect_refused("{% set l = [] %}" + loops + "{% do l.append(l) %}" + ends, "steps");
  expect_refused("{% set n = namespace(s='ab') %}" + loops + "{% set n.s = n.s + n.s %}" + ends,
                 "a text of more than");
  expect_refused("{% set n = namespace(l=[1, 2]) %}" + loops + "{% set n.l = n.l + n.l %}" + ends,
                 "chat template line 1: ");
  expect_refused(loops + repeated("x", 5000) + ends, "a text of more than");
  expect_refused("{% set s = 'ab' * 1000000 %}" + loops + "{{ s.find('c') }}" + ends, "steps");
  expect_refused("{% set s = 'ab' * 1000000 %}" + loops + "{{ s | length }}" + ends, "steps");
  expect_refused("{% set s = 'a' * 1000000 %}" + loops + "{{ s.rfind(s[1:] + 'b') }}" + ends,
                 "steps");
  expect_refused("{% set d = {} %}" + loops + "{% do d.update({a * 100000 + b: 1}) %}" + ends, "");
}

TEST(TemplateBounds, RefusesDeepRecursion) {
  expect_refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested");
  expect_refused(
      "{% macro f() %}{% for i in [1] %}{% if i %}{{ [f() ~ '']|first }}{% endif %}"
      "{% endfor %}{% endmacro %}{{ f() }}",
      "nested");
  expect_refused("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nested");
  expect_refused("{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "nested");
  expect_refused("{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "nested");
  expect_refused("{{ " + repeated("not ", 5000) + "1 }}", "nested");
  expect_refused("{{ " + repeated("-", 5000) + "1 }}", "nested");
  expect_refused(repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000), "nested");
  expect_refused("{{ a" + repeated("|upper", 5000) + " }}", "nested");
  expect_refused("{% set " + repeated("(", 200) + "a" + repeated(")", 200) + " = 1 %}", "nested");
}

struct deep_job {
  std::string source;
  outcome got;
};

/// Renders on a thread with as little stack as a small server gives one.
outcome rendered_on_small_stack(std::string_view source) {
  size_t stack = size_t{512} << 10;
#ifdef LETHE_SANITIZED
  stack *= 8;  // frames with red zones, and nothing inlined in tests
#endif
  deep_job job{std::string(source), {}};
  pthread_attr_t with;
  pthread_attr_init(&with);
  EXPECT_EQ(pthread_attr_setstacksize(&with, stack), 0);
  pthread_t thread;
  const auto run = [](void* at) -> void* {
    auto& here = *static_cast<deep_job*>(at);
    here.got = render(here.source);
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &with, run, &job), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&with);
  return job.got;
}

TEST(TemplateBounds, ReachesItsDepthOnASmallStack) {
  const std::string knot = "{% set l = [1] %}{% do l.append(l) %}";
  for (const std::string source :
       {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(a, b=1) %}{% for i in [1] %}{% if i %}{{ [f(a=i)|string ~ '']|first }}{% endif "
        "%}"
        "{% endfor %}{% endmacro %}{{ f() }}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% macro f() %}{{ caller() }}{% endmacro %}"
        "{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}",
        "{% macro f() %}{% filter upper %}{% set x %}{{ f() }}{% endset %}{{ x }}{% endfilter %}"
        "{% endmacro %}{{ f() }}",
        "{% macro f() %}{% with a = f() %}{{ a }}{% endwith %}{% endmacro %}{{ f() }}",
        "{% set n = namespace() %}{% macro f() %}{{ n.f() }}{% endmacro %}{% set n.f = f %}{{ f() "
        "}}",
        "{% macro f() %}{{ (f() if true else 1) and 2 }}{% endmacro %}{{ f() }}"}) {
    EXPECT_NE(rendered_on_small_stack(source).why.find("more than 800 nested"), std::string::npos)
        << source << rendered_on_small_stack(source).why;
  }
  for (const char* use : {"{{ l }}", "{{ l | tojson }}"}) {
    EXPECT_NE(rendered_on_small_stack(knot + use).why.find("nested"), std::string::npos) << use;
  }
  const outcome deep = rendered_on_small_stack(
      "{% macro f(n) %}{{ n }}{% if n %} {{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(190) }}");
  EXPECT_TRUE(deep.text.ends_with(" 1 0")) << deep.why;
}

TEST(TemplateBounds, EndsOnValuesThatHoldThemselves) {
  const std::string knot =
      "{% set l = [1] %}{% do l.append(l) %}{% set m = [1] %}{% do m.append(m) %}";
  expect_refused(knot + "{{ l }}", "nested");
  expect_refused(knot + "{{ l | tojson }}", "nested");
  expect_refused(knot + "{{ l == m }}", "nested");
  expect_refused(knot + "{{ l < m }}", "nested");
  // Few values, 2^40 paths through them.
  const std::string fan =
      "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(40) %}"
      "{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}";
  expect_refused(fan + "{{ n.a == n.b }}", "steps");
  expect_refused(fan + "{{ n.a }}", "chat template line 1");
  expect_refused(fan + "{{ n.a | tojson }}", "chat template line 1");
}

TEST(TemplateBounds, RendersLongRowsWithoutDeepStacks) {
  EXPECT_EQ(render("{{ 1" + repeated(" + 1", 5000) + " }}").text, "5001");
  EXPECT_EQ(render("{{ ''" + repeated(" ~ 'a'", 5000) + " }}").text, repeated("a", 5000));
  const std::string branches = repeated("{% elif x == 2 %}b", 5000);
  EXPECT_EQ(render("{% if x %}a" + branches + "{% else %}c{% endif %}").text, "c");
}

TEST(TemplateBounds, RefusesJsonThatIsTooDeepOrBroken) {
  const auto with = [](const std::string& messages) {
    return render("{{ messages | length }}", {.messages = messages});
  };
  const size_t deep = limits::template_json_depth_max;
  EXPECT_EQ(with(repeated("[", deep) + repeated("]", deep)).text, "1");
  EXPECT_NE(with(repeated("[", 100000)).why.find("nested"), std::string::npos);
  for (const char* broken :
       {"[", "[1,]", "{\"a\"}", "[01]", "[1.]", "[\"\\x\"]", "[\"\\ud800\"]", "[\"a\nb\"]", "[\"a",
        "nul", "[1] 2", "[-]", "[1e]", "[\"\xff\"]", "[\"\\u12\"]", "{\"a\":1,}", "'a'", "[NaN]"}) {
    EXPECT_FALSE(with(broken).why.empty()) << broken;
  }
}

TEST(TemplateBounds, KeepsManyKeysInOrder) {
  std::string object = "{", wanted;
  for (int i = 0; i < 100000; ++i) {
    object += (i ? ",\"k" : "\"k") + std::to_string(i * 7919 % 100003) + "\":" + std::to_string(i);
  }
  object += ",\"k0\":5}";
  const outcome got =
      render("{{ messages|length }} {{ messages.k0 }} {{ messages|first }}", {.messages = object});
  EXPECT_EQ(got.text, "100000 5 k0") << got.why;
}

TEST(TemplateBounds, RefusesATemplateAboveItsSize) {
  const std::string largest(limits::template_bytes_max, 'x');
  EXPECT_EQ(render(largest).text, largest);
  EXPECT_NE(render(largest + "x").why.find("above the bound"), std::string::npos);
}

TEST(TemplateBounds, EndsWhereTheCallersMemoryEnds) {
  const auto compiled = chat_template::compile("{% for i in range(9999) %}{{ i }}{% endfor %}");
  ASSERT_TRUE(bool(compiled));
  std::byte room[4096];
  std::pmr::monotonic_buffer_resource memory(room, sizeof room, std::pmr::null_memory_resource());
  const auto prompt = compiled->render({.messages = "[]"}, &memory);
  ASSERT_FALSE(bool(prompt));
  EXPECT_NE(prompt.why().text.find("memory"), std::string::npos);
}

}  // namespace
}  // namespace lethe
