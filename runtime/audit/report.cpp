#include "runtime/audit/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/json/json_text.hpp"

namespace lethe::audit {

namespace {

/// Broken where it fits, at spaces; each line begins with `indent` blanks.
std::string wrapped(const std::string& text, size_t columns, size_t indent) {
  const size_t width = std::max<size_t>(columns, indent + 20) - indent;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(at + width, text.size());
    if (end < text.size()) {
      const size_t space = text.rfind(' ', end);
      if (space != text.npos && space > at) end = space;
    }
    out += std::string(indent, ' ') + text.substr(at, end - at) + "\n";
    at = text.find_first_not_of(' ', end);
  }
  return out;
}

std::string promise_of(const std::string& letters) {
  constexpr std::pair<char, const char*> names[] = {{'S', "stateless computation"},
                                                    {'T', "non-targetability"},
                                                    {'E', "enforceable guarantees"},
                                                    {'P', "no privileged runtime access"},
                                                    {'V', "verifiable transparency"}};
  for (auto [letter, name] : names)
    if (letters.starts_with(letter)) return name;
  return letters;
}

std::string control_text(const control& c) {
  return fmt::format("without {}: {}: {}", c.without, c.measured, c.found ? "found" : "NOT FOUND");
}

void write_controls(json_text& out, const finding& f) {
  out.key("controls").open('[');
  for (const auto& c : f.controls) {
    out.open('{').key("without").text(c.without).key("measured").text(c.measured);
    out.key("found").boolean(c.found).close('}');
  }
  out.close(']');
}

void write_plots(json_text& out, const finding& f) {
  out.key("plots").open('[');
  for (const auto& p : f.plots) {
    out.open('{').key("title").text(p.title).key("x").text(p.x).key("y").text(p.y);
    out.key("curves").open('[');
    for (const auto& c : p.curves) {
      out.open('{').key("name").text(c.name).key("points").open('[');
      for (auto [x, y] : c.points) out.open('[').number(x).number(y).close(']');
      out.close(']').close('}');
    }
    out.close(']').close('}');
  }
  out.close(']');
}

}  // namespace

std::string word_of(verdict v) {
  switch (v) {
    case verdict::held:
      return "held";
    case verdict::broken:
      return "BROKEN";
    case verdict::not_measured:
      break;
  }
  return "not measured";
}

bool report::stands() const {
  return !findings.empty() &&
         std::ranges::all_of(findings, [](const finding& f) { return f.stands(); });
}

size_t report::count(verdict v) const {
  return size_t(std::ranges::count(findings, v, &finding::said));
}

std::string as_text(const report& r, size_t columns) {
  std::string out =
      fmt::format("audit of {}\n{}; {}; {}\n\n", r.cluster, r.program, r.machine, r.date);
  for (const auto& f : r.findings) {
    out += fmt::format("{:<13} {:<2} {:<8} {}\n", word_of(f.said), f.promise, f.attacks, f.what);
    out += wrapped("measured: " + f.measured, columns, 17);
    out += wrapped("bound:    " + f.bound, columns, 17);
    for (const auto& c : f.controls) out += wrapped(control_text(c), columns, 17);
    if (!f.note.empty()) out += wrapped(f.note, columns, 17);
  }
  for (const auto& s : r.statements) out += "\n" + wrapped("Not counted: " + s, columns, 0);
  const size_t controls = [&r] {
    size_t missed = 0;
    for (const auto& f : r.findings)
      missed += size_t(std::ranges::count(f.controls, false, &control::found));
    return missed;
  }();
  out += fmt::format("\n{} held, {} broken, {} not measured; {} controls missed; {:.0f} s\n",
                     r.count(verdict::held), r.count(verdict::broken),
                     r.count(verdict::not_measured), controls, r.seconds);
  return out;
}

std::string as_json(const report& r) {
  json_text out(std::pmr::get_default_resource());
  out.open('{').key("cluster").text(r.cluster).key("program").text(r.program);
  out.key("machine").text(r.machine).key("date").text(r.date).key("seconds").number(r.seconds);
  out.key("stands").boolean(r.stands()).key("findings").open('[');
  for (const auto& f : r.findings) {
    out.open('{').key("promise").text(f.promise).key("promise_name").text(promise_of(f.promise));
    out.key("attacks").text(f.attacks).key("what").text(f.what);
    out.key("measured").text(f.measured).key("bound").text(f.bound);
    out.key("verdict").text(word_of(f.said)).key("stands").boolean(f.stands());
    write_controls(out, f);
    out.key("note").text(f.note);
    write_plots(out, f);
    out.close('}');
  }
  out.close(']').key("statements").open('[');
  for (const auto& s : r.statements) out.text(s);
  out.close(']').close('}');
  return std::string(out.str()) + "\n";
}

}  // namespace lethe::audit
