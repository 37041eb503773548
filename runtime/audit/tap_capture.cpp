#include "runtime/audit/tap_capture.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>

#include "runtime/base/mapped_file.hpp"

namespace lethe::audit {

namespace {

constexpr size_t capture_bytes_max = size_t{64} << 20;
constexpr size_t alike_parts = 16;  // lengths are alike that differ by less than a sixteenth

bool tells(const piece& p) {
  auto odd = [](unsigned char c) { return (c < 0x20 && c != '\r' && c != '\n') || c >= 0x7f; };
  return std::ranges::count_if(p, odd) >= 4;
}

size_t apart(size_t a, size_t b) { return a > b ? a - b : b - a; }

bool alike(size_t a, size_t b) { return apart(a, b) * alike_parts < std::max(a, b); }

/// One connection as it goes on.
struct tapped_connection {
  std::string address, asked;
  tapped_exchange now;
  bool answered = false;

  void end_into(std::vector<tapped_exchange>& all) {
    if (!asked.empty()) {
      now.address = address;
      now.asked_bytes = asked.size();
      now.pieces = pieces_of(asked);
      all.push_back(std::move(now));
    }
    now = {};
    asked.clear();
    answered = false;
  }
};

std::optional<tapped_part> read_part(const std::string& line) {
  tapped_part p;
  std::string way, what;
  std::istringstream in(line);
  in >> p.at_us >> p.connection >> way >> what;
  if (!in || in.peek() != std::istringstream::traits_type::eof()) return {};
  if (way == "from") {
    p.address = what;
    return p;
  }
  p.bytes = size_t(std::strtoull(what.c_str(), nullptr, 10));
  if (p.bytes == 0 || (way != ">" && way != "<")) return {};
  p.where = way == ">" ? tapped_part::way::asked : tapped_part::way::said;
  return p;
}

}  // namespace

std::string index_of(const std::string& recording) { return recording + ".index"; }

std::vector<piece> pieces_of(std::string_view bytes) {
  std::vector<piece> all;
  for (size_t at = 0; at + sizeof(piece) <= bytes.size(); ++at) {
    piece p;
    std::memcpy(p.data(), bytes.data() + at, sizeof p);
    if (tells(p)) all.push_back(p);
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

result<std::vector<piece>> pieces_in(const std::string& recording) {
  auto kept = read_text(recording, capture_bytes_max);
  if (!kept) return kept.why();
  return pieces_of(*kept);
}

size_t in_common(const std::vector<piece>& a, const std::vector<piece>& b) {
  std::vector<piece> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both.size();
}

result<std::vector<tapped_part>> parts_in(const std::string& recording) {
  auto index = read_text(index_of(recording), capture_bytes_max);
  if (!index) return index.why();
  std::vector<tapped_part> all;
  std::istringstream lines(*index);
  // A last line without an end is still being written.
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    auto read = read_part(line);
    if (!read)
      return fail("{}:{}: no line of a tap's index; was the file changed?", index_of(recording),
                  all.size() + 1);
    all.push_back(*std::move(read));
  }
  return all;
}

result<std::vector<tapped_exchange>> exchanges_in(const std::string& recording) {
  // First what tells, then what it tells of: a tap that still runs writes them the other way round.
  auto parts = parts_in(recording);
  if (!parts) return parts.why();
  auto kept = read_text(recording, capture_bytes_max);
  if (!kept) return kept.why();
  std::vector<tapped_exchange> all;
  std::map<uint64_t, tapped_connection> open;
  size_t from = 0, count = 0;
  for (const auto& p : *parts) {
    ++count;
    if (p.where == tapped_part::way::opened) {
      open[p.connection].address = p.address;
      continue;
    }
    auto known = open.find(p.connection);
    if (known == open.end() || p.bytes > kept->size() - from)
      return fail("{}:{}: {} does not hold what it says", index_of(recording), count, recording);
    auto& c = known->second;
    if (p.where == tapped_part::way::asked) {
      if (c.answered) c.end_into(all);
      if (c.asked.empty()) c.now.at_us = p.at_us;
      c.asked.append(*kept, from, p.bytes);
    } else {
      c.answered = true;
      c.now.said_bytes += p.bytes;
    }
    from += p.bytes;
  }
  for (auto& [n, c] : open) c.end_into(all);
  std::ranges::sort(all, {}, &tapped_exchange::at_us);
  return all;
}

tap_guesses guess_from(const tapped_exchange& of, const std::vector<tapped_exchange>& earlier) {
  tap_guesses g;
  size_t most = 0;
  for (const auto& e : earlier) {
    if (const size_t same = in_common(e.pieces, of.pieces); same > most) {
      most = same;
      g.by_strings = &e;
    }
    if (e.at_us > of.at_us) continue;
    g.by_time = &e;  // the last one before
    if (alike(e.asked_bytes, of.asked_bytes)) g.by_both = &e;
    if (!g.by_length ||
        apart(e.asked_bytes, of.asked_bytes) <= apart(g.by_length->asked_bytes, of.asked_bytes))
      g.by_length = &e;
  }
  return g;
}

}  // namespace lethe::audit
