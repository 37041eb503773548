#include "runtime/json/scan_json.hpp"

namespace lethe {

void json_scan::skip_text() {
  for (++at_; now() != '"'; ++at_)
    if (now() == '\\') ++at_;
  ++at_;
}

void json_scan::skip_value() {
  size_t open = 0;
  do {
    skip_blanks();
    switch (now()) {
      case '"':
        skip_text();
        break;
      case '{':
      case '[':
        ++open;
        ++at_;
        break;
      case '}':
      case ']':
        --open;
        ++at_;
        break;
      case ',':
      case ':':
        ++at_;
        break;
      default:
        while (!done() && std::string_view(",:]} \n\t\r").find(now()) == std::string_view::npos)
          ++at_;
    }
  } while (open > 0);
}

}  // namespace lethe
