#include "runtime/telemetry/telemetry.hpp"

#include <capnp/schema.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/config/annotations.hpp"
#include "runtime/config/quantity.hpp"

namespace lethe {

namespace {

template <class Enum>
std::string_view help_of(size_t i) {
  auto all = capnp::Schema::from<Enum>().getEnumerants();
  if (i >= all.size()) return "?";
  for (auto a : all[unsigned(i)].getProto().getAnnotations())
    if (a.getId() == annotations::help_id) return a.getValue().getText().cStr();
  return "?";
}

/// Braces filled in, one after the other.
class filling {
 public:
  filling(const telemetry_event& event, const telemetry_names& names)
      : event_(event), names_(names) {}

  std::string text_of(std::string_view form) {
    std::string out;
    while (!form.empty()) {
      size_t open = std::min(form.find('{'), form.size());
      out += form.substr(0, open);
      form.remove_prefix(open);
      size_t close = form.find('}');
      if (close == form.npos) break;
      out += word_for(form.substr(1, close - 1));
      form.remove_prefix(close + 1);
    }
    return out;
  }
  size_t used() const { return used_; }

 private:
  std::string word_for(std::string_view what) {
    if (what == "cluster") return names_.cluster;
    if (what == "model") return names_.model;
    uint64_t n = event_.number(used_++);
    if (what == "host") return n < names_.hosts.size() ? names_.hosts[n] : "a host that came later";
    if (what == "bytes") return bytes_text(n);
    if (what == "errno") return std::strerror(int(n));
    if (what == "part") return std::string(help_of<schema::Part>(n));
    if (what == "end") return std::string(help_of<schema::End>(n));
    if (what == "fault") return text_of(help_of<schema::Fault>(n));
    return std::to_string(n);
  }

  const telemetry_event& event_;
  const telemetry_names& names_;
  size_t used_ = 0;
};

}  // namespace

uint32_t telemetry_names::place_of(std::string_view host) const {
  return uint32_t(std::ranges::find(hosts, host) - hosts.begin());
}

std::string rendered(const telemetry_event& event, const telemetry_names& names) {
  return filling(event, names).text_of(help_of<schema::Event>(size_t(event.what())));
}

schema::End end_named(std::string_view reason) {
  size_t best = 0, longest = 0;
  auto count = capnp::Schema::from<schema::End>().getEnumerants().size();
  for (size_t i = 1; i < count; ++i) {
    auto text = help_of<schema::End>(i);
    if (!reason.starts_with(text) || text.size() <= longest) continue;
    best = i;
    longest = text.size();
  }
  return schema::End(best);
}

size_t numbers_of(schema::Event what) {
  telemetry_names none;
  telemetry_event bare(what);
  filling form(bare, none);
  form.text_of(help_of<schema::Event>(size_t(what)));
  return form.used();
}

}  // namespace lethe
