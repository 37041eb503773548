#include "runtime/publish/outside_witnesses.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace lethe {

namespace {

/// The one number and line end that a 409 has.
std::optional<uint64_t> size_in(std::string_view body) {
  uint64_t size = 0;
  auto [end, wrong] = std::from_chars(body.data(), body.data() + body.size(), size);
  if (wrong != std::errc() || body.substr(size_t(end - body.data())) != "\n") return {};
  return size;
}

std::string meaning(uint16_t status) {
  switch (status) {
    case 403:
      return "does not know this log's key: it has another one of the same name";
    case 404:
      return "does not know this log: its operator adds the key, [witness] logs";
    case 422:
      return "refuses: it saw another history of this log";
    default:
      return fmt::format("answers {}", status);
  }
}

}  // namespace

outside_witnesses::outside_witnesses(publisher& from, std::vector<note_key> keys) : from_(from) {
  for (auto& k : keys) all_.push_back({.key = std::move(k)});
}

/// Each head, and each new word of the cluster's own witness for it, is asked for anew.
void outside_witnesses::follow(uint64_t now_ns) {
  if (from_.round() == round_) return;
  round_ = from_.round();
  begun_ns_ = now_ns;
  news_ = true;
  for (auto& w : all_) w.not_before_ns = 0;
}

std::vector<outside_witnesses::ask> outside_witnesses::due(uint64_t now_ns) {
  follow(now_ns);
  std::vector<ask> asks;
  for (size_t i = 0; i < all_.size(); ++i) {
    one& w = all_[i];
    if (w.asking || w.good == round_ || now_ns < w.not_before_ns) continue;
    w.asking = true;
    w.asked = from_.newest();
    w.asked_round = round_;
    asks.push_back({i, from_.ask_text(w.seen)});
  }
  return asks;
}

void outside_witnesses::said(size_t witness, const result<witness_answer>& how, uint64_t now_ns) {
  one& w = all_.at(witness);
  w.asking = false;
  if (!how) return failed(w, "is not reached: " + how.why().text, now_ns);
  if (how->status == 200) return cosigned(w, how->body, now_ns);
  if (how->status == 409) return conflict(w, how->body, now_ns);
  failed(w, meaning(how->status), now_ns);
}

/// A wrong word on a head would make every client refuse it, so none is passed on unread.
void outside_witnesses::cosigned(one& w, std::string_view lines, uint64_t now_ns) {
  auto words = parse_signatures(lines);
  if (!words) return failed(w, "answers no signature: " + words.why().text, now_ns);
  auto by = [&](const auto& s) { return s.name == w.key.name() && s.key_id == w.key.id(); };
  auto own = std::ranges::find_if(*words, by);
  if (own == words->end()) return failed(w, "signs with another key than the file has", now_ns);
  signed_head note = w.asked;
  note.signatures.push_back(*own);
  if (!verify_head(note, note_trust{from_.note_keys().log, {w.key}, 1}))
    return failed(w, "gives a wrong signature", now_ns);
  w.seen = w.asked.head.size;
  w.settled = w.good = w.asked_round;
  w.word = std::move(*own);
  w.word_of = w.asked.head;
  w.word_at_ns = now_ns;
  w.told = false;
  w.trouble.clear();
  news_ = true;
}

/// It saw another size last than we thought, or another root at that size.
void outside_witnesses::conflict(one& w, std::string_view body, uint64_t now_ns) {
  auto size = size_in(body);
  const uint64_t ours = w.asked.head.size;
  if (!size) return failed(w, meaning(409), now_ns);
  if (*size > ours)
    return failed(w,
                  fmt::format("refuses: it saw {} entries of this log, which has {}: the folder is "
                              "an old copy",
                              *size, ours),
                  now_ns);
  if (*size == w.seen) return failed(w, meaning(422), now_ns);
  if (std::exchange(w.told, true)) return failed(w, meaning(409), now_ns);
  w.seen = *size;
}

void outside_witnesses::failed(one& w, std::string why, uint64_t now_ns) {
  w.settled = w.asked_round;
  w.not_before_ns = now_ns + again_ns;
  w.told = false;
  w.trouble = std::move(why);
}

bool outside_witnesses::settled(uint64_t now_ns) const {
  if (now_ns - begun_ns_ >= patience_ns) return true;
  return std::ranges::all_of(all_, [this](const one& w) { return w.settled == round_; });
}

std::vector<note_signature> outside_witnesses::words(uint64_t now_ns) const {
  std::vector<note_signature> good;
  for (const one& w : all_)
    if (w.word_of == from_.newest().head && (w.good == round_ || now_ns - w.word_at_ns < word_ns))
      good.push_back(w.word);
  return good;
}

result<void> outside_witnesses::publish(uint64_t now_ns) {
  follow(now_ns);
  if (!news_ || !settled(now_ns)) return {};
  if (auto ok = from_.publish(words(now_ns)); !ok) return ok.why();
  news_ = false;
  return {};
}

std::string outside_witnesses::note() const {
  std::string all;
  for (const one& w : all_)
    if (!w.trouble.empty())
      all += fmt::format("{}witness {} {}", all.empty() ? "" : "; ", w.key.name(), w.trouble);
  return all;
}

}  // namespace lethe
