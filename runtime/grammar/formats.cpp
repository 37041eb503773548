#include <string>

#include "runtime/grammar/schema_compiler.hpp"

namespace lethe {

namespace {

// RFC 3339, with the days that each month has.
std::string date() {
  return "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
         "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
         "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
}

std::string time() {
  return "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"
         "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
}

std::string date_time() { return date() + "T" + time(); }

// RFC 3339, appendix A.
std::string duration() {
  std::string seconds = "[0-9]+S", minutes = "[0-9]+M(?:" + seconds + ")?";
  std::string time = "T(?:[0-9]+H(?:" + minutes + ")?|" + minutes + "|" + seconds + ")";
  std::string months = "[0-9]+M(?:[0-9]+D)?";
  return "P(?:[0-9]+W|(?:[0-9]+Y(?:" + months + ")?|" + months + "|[0-9]+D)(?:" + time + ")?|" +
         time + ")";
}

std::string label() { return "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"; }
std::string hostname() { return label() + "(?:\\." + label() + ")*"; }

std::string email() {
  std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  return atom + "(?:\\." + atom + ")*@" + label() + "(?:\\." + label() + ")+";
}

std::string ipv4() {
  std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return byte + "(?:\\." + byte + "){3}";
}

// RFC 4291, 2.2: eight groups, or :: for the zeros of one or more.
std::string ipv6() {
  std::string group = "[0-9A-Fa-f]{1,4}", all = "(?:" + group + ":){7}" + group;
  all += "|(?:" + group + ":){1,7}:|:(?::" + group + "){1,7}|::";
  for (int before = 1; before <= 6; ++before)
    all += "|(?:" + group + ":){1," + std::to_string(before) + "}(?::" + group + "){1," +
           std::to_string(7 - before) + "}";
  return all;
}

std::string uuid() { return "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"; }

struct named_format {
  const char* name;
  std::string (*pattern)();
};

constexpr named_format formats[] = {
    {"date-time", date_time}, {"date", date},         {"time", time},
    {"duration", duration},   {"email", email},       {"ipv4", ipv4},
    {"ipv6", ipv6},           {"hostname", hostname}, {"uuid", uuid},
};

}  // namespace

std::optional<std::string> pattern_of_format(json_slice name) {
  for (const auto& f : formats)
    if (name.says(f.name)) return f.pattern();
  return {};
}

}  // namespace lethe
