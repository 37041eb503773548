// Random schemas: whatever a walk through the masks says is JSON and valid under the schema, by a
// validator that shares nothing with the compiler; and random valid values are taken.

#include <simdjson.h>

#include <cstdlib>

#include "tests/unit/grammar_match.hpp"

namespace lethe {
namespace {

using random_bits = std::mt19937;

/// A schema as our own small tree, printed as JSON for the compiler, and read by the validator.
struct shape {
  enum class kind { object, list, text, integer, number, flag, null, choice, any_of } is;
  struct member;
  std::vector<member> members;
  std::vector<bool> required;
  bool open = false;
  std::vector<shape> parts;  // items, or alternatives
  int64_t least = 0, most = 0;
  std::vector<std::string> values;  // as JSON
};
struct shape::member {
  std::string name;
  shape value;
};

size_t below(random_bits& r, size_t n) { return r() % n; }

shape random_shape(random_bits& r, int depth) {
  using k = shape::kind;
  shape s{};
  s.is = k(below(r, depth > 0 ? 9 : 6));
  if (depth == 0 && (s.is == k::object || s.is == k::list)) s.is = k::text;
  if (s.is == k::object) {
    size_t n = below(r, 5);
    for (size_t i = 0; i < n; ++i) {
      std::string name = std::vector<std::string>{"name", "nam", "é", "a b", "x"}[i];
      s.members.emplace_back(name, random_shape(r, depth - 1));
      s.required.push_back(below(r, 2));
    }
    s.open = below(r, 2);
    s.parts.push_back(random_shape(r, 0));  // of additional properties
  } else if (s.is == k::list) {
    s.parts.push_back(random_shape(r, depth - 1));
    s.least = int64_t(below(r, 3));
    s.most = s.least + int64_t(below(r, 4));
  } else if (s.is == k::text) {
    s.least = int64_t(below(r, 4));
    s.most = s.least + int64_t(below(r, 12));
  } else if (s.is == k::integer) {
    s.least = int64_t(below(r, 3000)) - 1500;
    s.most = s.least + int64_t(below(r, 3000));
  } else if (s.is == k::choice) {
    s.values = {"\"red\"", "\"re\"", "12", "null", "\"a\\\"b\""};
    s.values.resize(1 + below(r, 5));
  } else if (s.is == k::any_of) {
    for (size_t i = 0; i < 1 + below(r, 3); ++i) s.parts.push_back(random_shape(r, depth - 1));
    if (s.parts.empty()) s.parts.push_back(random_shape(r, 0));
  }
  return s;
}

std::string printed(const shape& s) {
  using k = shape::kind;
  auto bounds = [&](const char* low, const char* high) {
    return std::string(",\"") + low + "\":" + std::to_string(s.least) + ",\"" + high +
           "\":" + std::to_string(s.most) + "}";
  };
  std::string out;
  switch (s.is) {
    case k::object: {
      out = R"({"type":"object","properties":{)";
      std::string required;
      for (size_t i = 0; i < s.members.size(); ++i) {
        out += (i ? ",\"" : "\"") + s.members[i].name + "\":" + printed(s.members[i].value);
        if (s.required[i]) required += (required.empty() ? "\"" : ",\"") + s.members[i].name + "\"";
      }
      return out + "},\"required\":[" + required +
             "],\"additionalProperties\":" + (s.open ? printed(s.parts[0]) : "false") + "}";
    }
    case k::list:
      return R"({"type":"array","items":)" + printed(s.parts[0]) + bounds("minItems", "maxItems");
    case k::text:
      return R"({"type":"string")" + bounds("minLength", "maxLength");
    case k::integer:
      return R"({"type":"integer")" + bounds("minimum", "maximum");
    case k::number:
      return R"({"type":"number"})";
    case k::flag:
      return R"({"type":"boolean"})";
    case k::null:
      return R"({"type":"null"})";
    case k::choice:
      for (const auto& v : s.values) out += (out.empty() ? "" : ",") + v;
      return "{\"enum\":[" + out + "]}";
    case k::any_of:
      for (const auto& p : s.parts) out += (out.empty() ? "" : ",") + printed(p);
      return "{\"anyOf\":[" + out + "]}";
  }
  return out;
}

using element = simdjson::dom::element;

int64_t characters(std::string_view text) {
  int64_t n = 0;
  for (char c : text) n += (uint8_t(c) & 0xC0) != 0x80;
  return n;
}

bool valid(const shape& s, element v) {
  using k = shape::kind;
  switch (s.is) {
    case k::object: {
      simdjson::dom::object o;
      if (v.get(o)) return false;
      std::vector<std::string> seen;
      for (auto [key, value] : o) {
        // Other names may come again (readers take the last), declared ones may not.
        for (const auto& before : seen)
          for (const auto& m : s.members)
            if (before == key && m.name == key) return false;
        seen.emplace_back(key);
        const shape* wanted = s.open ? &s.parts[0] : nullptr;
        for (const auto& m : s.members)
          if (m.name == key) wanted = &m.value;
        if (!wanted || !valid(*wanted, value)) return false;
      }
      for (size_t i = 0; i < s.members.size(); ++i)
        if (s.required[i] && std::find(seen.begin(), seen.end(), s.members[i].name) == seen.end())
          return false;
      return true;
    }
    case k::list: {
      simdjson::dom::array a;
      if (v.get(a) || int64_t(a.size()) < s.least || int64_t(a.size()) > s.most) return false;
      for (auto item : a)
        if (!valid(s.parts[0], item)) return false;
      return true;
    }
    case k::text: {
      std::string_view t;
      return !v.get(t) && characters(t) >= s.least && characters(t) <= s.most;
    }
    case k::integer: {
      int64_t i;
      return !v.get(i) && i >= s.least && i <= s.most;
    }
    case k::number:
      return v.is_number();
    case k::flag:
      return v.is_bool();
    case k::null:
      return v.is_null();
    case k::choice:
      for (const auto& wanted : s.values)
        if (simdjson::to_string(v) == wanted) return true;
      return false;
    case k::any_of:
      for (const auto& p : s.parts)
        if (valid(p, v)) return true;
      return false;
  }
  return false;
}

std::string gap(random_bits& r) {
  return std::vector<std::string>{"", "", " ", "\n", "\n  \t"}[below(r, 5)];
}

std::string random_text(random_bits& r, int64_t least, int64_t most) {
  static const std::vector<std::string> pieces{
      "a", "b", " ", "é", "日", "\\n", "\\\"", "\\u00e9", "\xF0\x9F\x98\x80", "\\ud83d\\ude00",
      "/", "}"};
  std::string out = "\"";
  for (int64_t n = least + int64_t(below(r, size_t(most - least) + 1)); n > 0; --n)
    out += pieces[below(r, pieces.size())];
  return out + "\"";
}

std::string random_value(const shape& s, random_bits& r) {
  using k = shape::kind;
  switch (s.is) {
    case k::object: {
      std::string out;
      auto add = [&](const std::string& key, const shape& value) {
        out += (out.empty() ? "" : gap(r) + "," + gap(r)) + "\"" + key + "\"" + gap(r) + ":" +
               gap(r) + random_value(value, r);
      };
      for (size_t i = 0; i < s.members.size(); ++i)
        if (s.required[i] || below(r, 2)) add(s.members[i].name, s.members[i].value);
      for (size_t i = 0; s.open && i < below(r, 3); ++i)
        add(std::vector<std::string>{"other", "names"}[i % 2], s.parts[0]);
      return "{" + gap(r) + out + (out.empty() ? "" : gap(r)) + "}";
    }
    case k::list: {
      std::string out;
      int64_t n = s.least + int64_t(below(r, size_t(s.most - s.least) + 1));
      for (int64_t i = 0; i < n; ++i)
        out += (i ? gap(r) + "," + gap(r) : "") + random_value(s.parts[0], r);
      return "[" + gap(r) + out + (n ? gap(r) : "") + "]";
    }
    case k::text:
      return random_text(r, s.least, s.most);
    case k::integer:
      return std::to_string(s.least + int64_t(below(r, size_t(s.most - s.least) + 1)));
    case k::number:
      return std::vector<std::string>{"0", "-1.5", "3e-7", "120"}[below(r, 4)];
    case k::flag:
      return below(r, 2) ? "true" : "false";
    case k::null:
      return "null";
    case k::choice:
      return s.values[below(r, s.values.size())];
    case k::any_of:
      return random_value(s.parts[below(r, s.parts.size())], r);
  }
  return "";
}

uint32_t seeds() {
  const char* set = std::getenv("LETHE_SEEDS");
  return set ? uint32_t(std::atoi(set)) : 150;
}

/// Draws until the end; what closes something is drawn more often, or texts would never end.
std::string drawn(matched& m, random_bits& r) {
  std::string out;
  for (int i = 0; i < 2000 && !m.run().must_end(0); ++i) {
    auto ids = m.allowed();
    if (m.run().may_end(0) && (ids.empty() || below(r, 4) == 0)) break;
    if (ids.empty()) return "dead end behind " + out;
    uint32_t id = ids[below(r, ids.size())];
    for (uint32_t closing : ids) {
      auto t = small_trie().bytes(closing);
      if (below(r, 6) == 0 && (t == "\"" || t == "}" || t == "]")) id = closing;
    }
    if (!m.run().accept_token(0, id)) return "refused what the mask allows behind " + out;
    out += small_trie().bytes(id);
  }
  return out;
}

TEST(RandomSchemas, WhatTheMasksAllowIsValidAndWhatIsValidIsTaken) {
  simdjson::dom::parser parser;
  for (uint32_t seed = 0; seed < seeds(); ++seed) {
    random_bits r(seed);
    auto s = random_shape(r, 3);
    auto text = printed(s);
    for (int i = 0; i < 6; ++i) {
      matched m(schema_grammar, text);
      ASSERT_TRUE(m.good()) << "seed " << seed << ": " << text << ": " << m.why();
      auto said = drawn(m, r);
      ASSERT_TRUE(m.run().may_end(0)) << "seed " << seed << ": " << text << "\n" << said;
      element v;
      simdjson::padded_string padded(said);
      ASSERT_FALSE(parser.parse(padded).get(v)) << "seed " << seed << ": " << text << "\n" << said;
      ASSERT_TRUE(valid(s, v)) << "seed " << seed << ": " << text << "\n" << said;
      matched again(schema_grammar, text);
      auto value = random_value(s, r);
      ASSERT_TRUE(again.takes(value)) << "seed " << seed << ": " << text << "\n" << value;
    }
  }
}

}  // namespace
}  // namespace lethe
