#include "runtime/config/api_keys.hpp"

#include <algorithm>

#include "runtime/base/mapped_file.hpp"

namespace lethe {

namespace {

constexpr size_t file_bytes_max = size_t{1} << 20;

std::string_view without_blanks(std::string_view line) {
  constexpr std::string_view blanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  return line.substr(0, line.find_last_not_of(blanks) + 1);
}

}  // namespace

result<std::vector<std::string>> read_api_keys(const cluster_config& config) {
  std::string file = config.get().getListen().getApiKeys();
  std::vector<std::string> keys;
  if (file.empty()) return keys;
  auto text = read_text(config.resolve(file), file_bytes_max);
  if (!text) return text.why();
  for (size_t at = 0; at < text->size();) {
    size_t end = std::min(text->find('\n', at), text->size());
    auto line = without_blanks(std::string_view(*text).substr(at, end - at));
    if (!line.empty() && line.front() != '#') keys.emplace_back(line);
    at = end + 1;
  }
  if (keys.empty()) return fail("{}: holds no key; one a line is expected", file);
  return keys;
}

}  // namespace lethe
