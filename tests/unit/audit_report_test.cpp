// A report says what was found, whatever form it takes, and can't be made to say more.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <sstream>

#include "runtime/audit/report.hpp"

namespace lethe::audit {
namespace {

report sample() {
  report r{.cluster = "a cluster", .program = "lethe 1", .machine = "m", .date = "2026-01-02"};
  finding good{.promise = "S",
               .attacks = "A2",
               .what = "no <trace>",
               .measured = "0 traces",
               .bound = "0",
               .said = verdict::held};
  good.controls.push_back({.without = "wiping", .measured = "3 traces", .found = true});
  good.plots.push_back({.title = "one",
                        .x = "load",
                        .y = "ms",
                        .curves = {{"a & b", {{0, 1}, {1, 2}, {2, 4}}}, {"c", {{0, 2}, {2, 1}}}}});
  r.findings.push_back(good);
  return r;
}

TEST(Report, StandsOnlyWithItsControls) {
  auto r = sample();
  EXPECT_TRUE(r.stands());
  r.findings[0].controls[0].found = false;
  EXPECT_FALSE(r.stands());
  r = sample();
  r.findings[0].said = verdict::broken;
  EXPECT_FALSE(r.stands());
  r = sample();
  r.findings[0].said = verdict::not_measured;
  EXPECT_FALSE(r.stands());
  r.findings.clear();
  EXPECT_FALSE(r.stands()) << "who measured nothing shows nothing";
}

TEST(Report, TextHasALineForEachThing) {
  auto r = sample();
  r.findings[0].controls[0].found = false;
  const auto text = as_text(r, 60);
  for (const char* part : {"held", "no <trace>", "0 traces", "without wiping", "NOT FOUND",
                           "1 held, 0 broken, 0 not measured; 1 controls missed"})
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("   ")) {
      EXPECT_LE(line.size(), 60u) << line;
    }
}

TEST(Report, JsonReadsBack) {
  simdjson::dom::parser parser;
  const auto text = as_json(sample());
  simdjson::dom::element root;
  ASSERT_FALSE(parser.parse(text).get(root)) << text;
  EXPECT_TRUE(bool(root["stands"]));
  auto f = root["findings"].at(0);
  EXPECT_EQ(std::string_view(f["verdict"]), "held");
  EXPECT_TRUE(bool(f["controls"].at(0)["found"]));
  EXPECT_EQ(double(f["plots"].at(0)["curves"].at(0)["points"].at(2).at(1)), 4.0);
}

TEST(Report, PageIsWholeAndTextStaysText) {
  const auto page = as_html(sample());
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_EQ(page.find("<trace>"), page.npos);
  EXPECT_NE(page.find("no &lt;trace&gt;"), page.npos);
  EXPECT_NE(page.find("a &amp; b"), page.npos);
  for (const char* elsewhere : {"http:", "https:", "<script", "url(", "@import"})
    EXPECT_EQ(page.find(elsewhere), page.npos) << elsewhere;
}

TEST(Report, PlotsStayInTheirPicture) {
  for (bool bars : {false, true})
    for (bool log : {false, true}) {
      auto p = sample().findings[0].plots[0];
      p.bars = bars;
      p.log_y = log;
      const auto svg = as_svg(p);
      EXPECT_NE(svg.find(bars ? "<rect" : "<path"), svg.npos);
      EXPECT_EQ(svg.find("nan"), svg.npos) << svg;
      EXPECT_EQ(svg.find("inf"), svg.npos) << svg;
    }
  EXPECT_EQ(as_svg({}), "");
  EXPECT_EQ(as_svg({.curves = {{"flat", {{1, 1}}}}}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace lethe::audit
