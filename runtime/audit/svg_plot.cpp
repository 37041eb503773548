#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/audit/escaped.hpp"
#include "runtime/audit/report.hpp"

namespace lethe::audit {

namespace {

constexpr double width = 640, height = 320, left = 64, right = 16, top = 16, bottom = 48;

/// One axis: from values to where they are drawn.
class scale {
 public:
  scale(double low, double high, double from, double to, bool log)
      : low_(place(low, log)), high_(place(high, log)), from_(from), to_(to), log_(log) {
    if (!(high_ > low_)) high_ = low_ + 1;
  }
  double at(double value) const {
    return from_ + (place(value, log_) - low_) / (high_ - low_) * (to_ - from_);
  }
  /// Round numbers to write beside it.
  std::vector<double> ticks() const {
    std::vector<double> all;
    if (log_) {
      for (double e = std::floor(low_); e <= high_ + 1e-9; ++e)
        if (e >= low_ - 1e-9) all.push_back(std::pow(10, e));
      if (all.size() >= 2) return all;
      return {std::pow(10, low_), std::pow(10, high_)};
    }
    const double rough = (high_ - low_) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : 2);
    for (double v = std::ceil(low_ / step) * step; v <= high_ + step * 1e-6; v += step)
      all.push_back(std::fabs(v) < step * 1e-6 ? 0 : v);
    return all;
  }

 private:
  static double place(double v, bool log) { return log ? std::log10(std::max(v, 1e-12)) : v; }
  double low_, high_, from_, to_;
  bool log_;
};

struct extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
};

std::string axis_text(const plot& p, const scale& xs, const scale& ys) {
  std::string out;
  for (double v : ys.ticks())
    out += fmt::format(
        "<line class='grid' x1='{0:.1f}' x2='{1:.1f}' y1='{2:.1f}' y2='{2:.1f}'/>"
        "<text x='{3:.1f}' y='{4:.1f}' text-anchor='end'>{5:g}</text>",
        left, width - right, ys.at(v), left - 6, ys.at(v) + 4, v);
  for (double v : xs.ticks())
    out += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{:g}</text>", xs.at(v),
                       height - bottom + 16, v);
  out += fmt::format(
      "<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>"
      "<text transform='translate(14 {:.1f}) rotate(-90)' text-anchor='middle'>{}</text>",
      (left + width - right) / 2, height - 10, escaped(p.x), (top + height - bottom) / 2,
      escaped(p.y));
  return out;
}

std::string bars_of(const curve& c, size_t which, size_t of, const scale& xs, const scale& ys,
                    double slot) {
  std::string out;
  const double wide = slot * 0.8 / double(of), floor = height - bottom;
  for (auto [x, y] : c.points) {
    const double at = xs.at(x) - slot * 0.4 + wide * double(which), up = ys.at(y);
    out += fmt::format(
        "<rect class='c{}' x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'><title>{}: {:g}, "
        "{:g}</title></rect>",
        which % 6, at, std::min(up, floor), std::max(wide - 1, 1.0), std::fabs(floor - up),
        escaped(c.name), x, y);
  }
  return out;
}

std::string line_of(const curve& c, size_t which, const scale& xs, const scale& ys) {
  std::string path;
  for (auto [x, y] : c.points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', xs.at(x), ys.at(y));
  return fmt::format("<path class='c{}' d='{}'><title>{}</title></path>", which % 6, path,
                     escaped(c.name));
}

}  // namespace

std::string as_svg(const plot& p) {
  extent x, y;
  size_t most = 1;
  for (const auto& c : p.curves) {
    most = std::max(most, c.points.size());
    for (auto [px, py] : c.points) {
      x.take(px);
      y.take(py);
    }
  }
  if (x.low > x.high) return {};
  if (!p.log_y) y.take(0);
  const double slot = (width - left - right) / double(most + 1);
  const double inset = p.bars ? slot : 0;
  const scale xs(x.low, x.high, left + inset, width - right - inset, p.log_x);
  const scale ys(y.low, y.high, height - bottom, top, p.log_y);
  std::string out = fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox='0 0 {} {}' role='img' "
      "aria-label='{}'>",
      escaped(p.title), width, height, escaped(p.title));
  out += axis_text(p, xs, ys);
  for (size_t i = 0; i < p.curves.size(); ++i)
    out += p.bars ? bars_of(p.curves[i], i, p.curves.size(), xs, ys, slot)
                  : line_of(p.curves[i], i, xs, ys);
  out += "</svg><ul class='legend'>";
  for (size_t i = 0; i < p.curves.size(); ++i)
    out += fmt::format("<li class='c{}'>{}</li>", i % 6, escaped(p.curves[i].name));
  return out + "</ul></figure>";
}

}  // namespace lethe::audit
