#include <fmt/format.h>

#include "runtime/audit/escaped.hpp"
#include "runtime/audit/report.hpp"

namespace lethe::audit {

namespace {

constexpr const char* style = R"(
:root{color-scheme:light dark;--fg:#1c2024;--bg:#fff;--soft:#60646c;--line:#d9d9e0;
--good:#18794e;--bad:#ce2c31;--none:#915930;--c0:#3358d4;--c1:#d14e00;--c2:#18794e;--c3:#8145b5;
--c4:#997f00;--c5:#c2298a}@media(prefers-color-scheme:dark){:root{--fg:#edeef0;--bg:#111113;
--soft:#b0b4ba;--line:#43484e;--good:#3dd68c;--bad:#ff9592;--none:#ffa057;--c0:#9eb1ff;
--c1:#ffa057;--c2:#3dd68c;--c3:#d19dff;--c4:#f5e147;--c5:#ff8dcc}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:64rem;
margin:2rem auto;padding:0 1rem}h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;
margin:2.5rem 0 .5rem}.soft,figcaption{color:var(--soft)}.held{color:var(--good)}
.broken{color:var(--bad)}.none{color:var(--none)}.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}th,td{text-align:left;
vertical-align:top;padding:.4rem .6rem;border-bottom:1px solid var(--line)}th{color:var(--soft);
font-weight:600}td.verdict{font-weight:600;white-space:nowrap}dl{display:grid;
grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.5rem 0}dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}figure{margin:1rem 0}svg{width:100%;max-width:40rem;
height:auto;display:block}svg text{fill:var(--soft);font:12px system-ui,sans-serif}
.grid{stroke:var(--line)}svg path{fill:none;stroke-width:2}.legend{list-style:none;display:flex;
flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.3rem 0;font-size:.88rem}
.legend li::before{content:"";display:inline-block;width:.8em;height:.8em;border-radius:2px;
background:currentColor;margin-right:.4em}svg path.c0{stroke:var(--c0)}
svg path.c1{stroke:var(--c1)}svg path.c2{stroke:var(--c2)}svg path.c3{stroke:var(--c3)}
svg path.c4{stroke:var(--c4)}svg path.c5{stroke:var(--c5)}rect.c0{fill:var(--c0)}
rect.c1{fill:var(--c1)}rect.c2{fill:var(--c2)}rect.c3{fill:var(--c3)}rect.c4{fill:var(--c4)}
rect.c5{fill:var(--c5)}li.c0{color:var(--c0)}li.c1{color:var(--c1)}li.c2{color:var(--c2)}
li.c3{color:var(--c3)}li.c4{color:var(--c4)}li.c5{color:var(--c5)}
)";

const char* class_of(const finding& f) {
  if (f.said == verdict::not_measured) return "none";
  return f.stands() ? "held" : "broken";
}

std::string verdict_text(const finding& f) {
  if (f.said == verdict::held && !f.stands()) return "held, but a control was missed";
  return word_of(f.said);
}

std::string controls_text(const finding& f) {
  std::string out;
  for (const auto& c : f.controls)
    out += fmt::format("<span class='{}'>{}</span> without {}<br>", c.found ? "held" : "broken",
                       c.found ? "found" : "missed", escaped(c.without));
  return out.empty() ? "none" : out;
}

std::string table_of(const report& r) {
  std::string out =
      "<div class='wide'><table><thead><tr><th>verdict</th><th>promise</th><th>attack</th>"
      "<th>what</th><th>measured</th><th>bound</th><th>controls</th></tr></thead><tbody>";
  for (size_t i = 0; i < r.findings.size(); ++i) {
    const auto& f = r.findings[i];
    out += fmt::format(
        "<tr><td class='verdict {}'>{}</td><td>{}</td><td>{}</td><td><a href='#f{}'>{}</a></td>"
        "<td>{}</td><td>{}</td><td>{}</td></tr>",
        class_of(f), verdict_text(f), escaped(f.promise), escaped(f.attacks), i, escaped(f.what),
        escaped(f.measured), escaped(f.bound), controls_text(f));
  }
  return out + "</tbody></table></div>";
}

std::string details_of(const finding& f, size_t i) {
  std::string out = fmt::format(
      "<section id='f{}'><h2>{}</h2><dl><dt>verdict</dt><dd class='{}'>{}</dd>"
      "<dt>measured</dt><dd>{}</dd><dt>bound</dt><dd>{}</dd>",
      i, escaped(f.what), class_of(f), verdict_text(f), escaped(f.measured), escaped(f.bound));
  for (const auto& c : f.controls)
    out += fmt::format("<dt>without {}</dt><dd><span class='{}'>{}</span>: {}</dd>",
                       escaped(c.without), c.found ? "held" : "broken",
                       c.found ? "found" : "missed", escaped(c.measured));
  out += "</dl>";
  if (!f.note.empty()) out += "<p>" + escaped(f.note) + "</p>";
  for (const auto& p : f.plots) out += as_svg(p);
  return out + "</section>";
}

}  // namespace

std::string as_html(const report& r) {
  std::string out = fmt::format(
      "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
      "<meta name='viewport' content='width=device-width,initial-scale=1'>"
      "<title>Audit of {0}</title><style>{1}</style></head><body><h1>Audit of {0}</h1>"
      "<p class='soft'>{2}<br>{3}<br>{4}, {5:.0f} s</p>",
      escaped(r.cluster), style, escaped(r.program), escaped(r.machine), escaped(r.date),
      r.seconds);
  out += fmt::format(
      "<p>{} promises held, {} broken, {} not measured. A promise stands if it held and the same "
      "measurement, repeated with a defence switched off, noticed.</p>",
      r.count(verdict::held), r.count(verdict::broken), r.count(verdict::not_measured));
  out += table_of(r);
  for (size_t i = 0; i < r.findings.size(); ++i) out += details_of(r.findings[i], i);
  if (!r.statements.empty()) out += "<h2>Not counted as a measurement</h2>";
  for (const auto& s : r.statements) out += "<p>" + escaped(s) + "</p>";
  return out + "</body></html>\n";
}

}  // namespace lethe::audit
