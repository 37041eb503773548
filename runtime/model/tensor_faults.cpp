#include "runtime/model/tensor_faults.hpp"

#include "runtime/model/byte_reader.hpp"

namespace lethe {

namespace {

std::string without_numbers(std::string_view name) {
  std::string out;
  for (char c : name) {
    bool digit = c >= '0' && c <= '9';
    if (!digit)
      out += c;
    else if (out.empty() || out.back() != '\0')
      out += '\0';
  }
  return out;
}

}  // namespace

void tensor_faults::add(std::string_view where, std::string_view tensor, std::string fault,
                        bool any_name) {
  std::string key = fault + "\n" + (any_name ? std::string() : without_numbers(tensor));
  auto [at, is_new] = index_.emplace(std::move(key), entries_.size());
  if (!is_new) {
    ++entries_[at->second].more;
  } else if (entries_.size() > problems_max) {
    at->second = problems_max;  // beyond what is listed
  } else {
    entries_.push_back({fmt::format("{}: tensor \"{}\" {}", where, printable(tensor), fault)});
  }
}

void tensor_faults::report(problem_list& problems) const {
  for (const auto& e : entries_) {
    if (e.more)
      note(problems, "{} (and {} more like it)", e.text, e.more);
    else
      note(problems, "{}", e.text);
  }
}

}  // namespace lethe
