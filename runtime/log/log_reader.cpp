#include "runtime/log/log_reader.hpp"

#include <algorithm>

#include "runtime/log/log_limits.hpp"
#include "runtime/log/roster_summary.hpp"

namespace lethe {

using raw_entry = std::vector<std::byte>;

/// What is found out before anything is remembered.
struct log_reader::reading {
  const log_fetch& fetch;
  uint64_t now_s;
  signed_head note;
  uint64_t first = 0;                  // entry that is read
  std::vector<raw_entry> raw;          // from there on
  std::vector<indexed_entry> entries;  // the same, parsed
  std::vector<indexed_entry> newest;   // of each kind, behind them
  merkle_frontier tree;
  tile_reader tiles{0, fetch};
  uint64_t size() const { return note.head.size; }
};

namespace {

const indexed_entry* newest_of(const std::vector<indexed_entry>& newest, log_kind kind) {
  auto at = std::ranges::find(newest, kind, [](const indexed_entry& e) { return e.entry.kind; });
  return at == newest.end() ? nullptr : &*at;
}

void set_newest(std::vector<indexed_entry>& newest, const indexed_entry& e) {
  std::erase_if(newest, [&](const indexed_entry& old) { return old.entry.kind == e.entry.kind; });
  newest.push_back(e);
}

/// The entries of one bundle, from `first` (in it) to the tree's end or the bundle's.
result<std::vector<raw_entry>> fetch_bundle(const log_fetch& fetch, uint64_t first, uint64_t size) {
  const uint64_t index = first / tile_width;
  const tile_path path{.entries = true, .index = index, .width = tile_width_of(index, size)};
  auto bytes = fetch(path.text());
  if (!bytes) return fail("log: missing {}: {}", path.text(), bytes.why().text);
  auto parts = split_bundle(*bytes, path.width);
  if (!parts) return fail("log: altered {}: {}", path.text(), parts.why().text);
  std::vector<raw_entry> out;
  for (size_t i = size_t(first % tile_width); i < parts->size(); ++i)
    out.emplace_back((*parts)[i].begin(), (*parts)[i].end());
  return out;
}

bool has_all(const std::vector<raw_entry>& raw, std::span<const log_kind> needed) {
  auto there = [&raw](log_kind kind) {
    auto of_kind = [kind](const auto& e) { return e.size() > 1 && e[1] == std::byte(kind); };
    return std::ranges::any_of(raw, of_kind);
  };
  return std::ranges::all_of(needed, there);
}

size_t bytes_of(const std::vector<raw_entry>& raw) {
  size_t sum = 0;
  for (const auto& e : raw) sum += e.size();
  return sum;
}

error too_much() {
  return fail("log: more than {} bytes of entries at once", limits::log_read_bytes_max);
}

/// Entries `first` up to `end` of a tree of that size.
result<std::vector<raw_entry>> fetch_range(const log_fetch& fetch, uint64_t first, uint64_t end,
                                           uint64_t size) {
  std::vector<raw_entry> all;
  size_t bytes = 0;
  while (first < end) {
    auto part = fetch_bundle(fetch, first, size);
    if (!part) return part.why();
    if (part->size() > end - first) part->resize(size_t(end - first));
    first += part->size();
    if ((bytes += bytes_of(*part)) > limits::log_read_bytes_max) return too_much();
    all.insert(all.end(), std::move_iterator(part->begin()), std::move_iterator(part->end()));
  }
  return all;
}

}  // namespace

result<uint64_t> check_age(std::span<const uint64_t> times, uint64_t now_s) {
  if (times.empty()) return now_s;
  const uint64_t median = times[(times.size() - 1) / 2];
  constexpr uint64_t off_max = limits::log_clock_off_max_s;
  if (median > now_s && median - now_s > off_max)
    return fail("log: clock: this one is {} s behind the witnesses'; set it right", median - now_s);
  if (now_s > median && now_s - median > off_max)
    return fail(
        "log: stale: witnesses signed this head {} s ago by this clock; at most {}. Ask "
        "again, or set the clock right",
        now_s - median, off_max);
  return median;
}

const log_entry* log_reader::current(log_kind kind) const {
  const indexed_entry* e = memory_ ? memory_->of(kind) : nullptr;
  return e ? &e->entry : nullptr;
}

result<void> log_reader::read(const log_fetch& fetch, uint64_t now_s) {
  if (evidence_)
    return fail("log: stopped: there is evidence against it ({}); keep it", evidence_->what);
  reading r{.fetch = fetch, .now_s = now_s};
  for (auto step : {&log_reader::check_head, &log_reader::take_entries, &log_reader::check_order})
    if (auto ok = (this->*step)(r); !ok) return ok;
  if (auto ok = check_kinds(r); !ok) return ok;
  news_ = std::move(r.entries);
  memory_ = log_memory{std::move(r.note), std::move(r.tree), std::move(r.newest)};
  return {};
}

result<void> log_reader::check_head(reading& r) {
  auto bytes = r.fetch("checkpoint");
  if (!bytes) return fail("log: missing checkpoint: {}", bytes.why().text);
  auto note = signed_head::parse(as_text(*bytes));
  if (!note) return fail("log: altered checkpoint: {}", note.why().text);
  r.note = *std::move(note);
  if (r.size() > limits::log_entries_max)
    return fail("log: more than {} entries", limits::log_entries_max);
  r.tiles = tile_reader(r.size(), r.fetch);
  auto times = verify_head(r.note, rules_.trust);
  if (!times) return times.why();
  if (auto ok = check_against_last(r); !ok) return ok;
  auto now = check_age(*times, r.now_s);
  if (!now) return now.why();
  r.now_s = *now;
  return {};
}

result<void> log_reader::check_against_last(reading& r) {
  if (!memory_) return {};
  const tree_head& last = memory_->note.head;
  if (r.size() < last.size)
    return fail("log: shrank: {} entries, after {}; ask elsewhere", r.size(), last.size);
  if (r.size() > last.size || r.note.head.root == last.root) return {};
  evidence_ = log_evidence{.what = "fork", .earlier = memory_->note, .later = r.note};
  return fail("log: fork: two heads of {} entries are signed; keep the evidence", last.size);
}

/// Every entry behind the last head; their hashes and what is known of the tree before them make
/// the new root, which proves that the log only grew and that each entry is in it.
result<void> log_reader::take_entries(reading& r) {
  r.first = memory_ ? memory_->note.head.size
                    : r.size() - std::min<uint64_t>(r.size(), rules_.first_entries);
  if (memory_) r.newest = memory_->newest;
  auto raw = fetch_range(r.fetch, r.first, r.size(), r.size());
  if (!raw) return raw.why();
  r.raw = *std::move(raw);
  while (!memory_ && r.first > 0 && !has_all(r.raw, rules_.needed))
    if (auto ok = go_back(r); !ok) return ok;
  auto before = memory_ ? result(memory_->tree) : merkle_frontier::from(r.first, r.tiles.source());
  if (!before) return fail("log: missing tiles: {}", before.why().text);
  r.tree = *std::move(before);
  for (const raw_entry& e : r.raw) r.tree.append(leaf_hash(e));
  return r.tree.root() == r.note.head.root ? result<void>() : explain_roots(r);
}

/// As many entries again as were read, from before them.
result<void> log_reader::go_back(reading& r) {
  const uint64_t more = std::max<uint64_t>(tile_width, r.raw.size());
  const uint64_t before = r.first - std::min(r.first, more);
  auto raw = fetch_range(r.fetch, before, r.first, r.size());
  if (!raw) return raw.why();
  raw->insert(raw->end(), std::move_iterator(r.raw.begin()), std::move_iterator(r.raw.end()));
  r.raw = *std::move(raw);
  r.first = before;
  return bytes_of(r.raw) > limits::log_read_bytes_max ? result<void>(too_much()) : result<void>();
}

/// Why what was read does not make the signed root: the log has another history, or somebody on
/// the way altered what it serves. Only the first is evidence.
error log_reader::explain_roots(reading& r) {
  const error altered = fail("log: altered: what is served does not make the signed root");
  if (!memory_ || memory_->note.head.size == 0) return altered;
  const tree_head& last = memory_->note.head;
  auto proof = consistency_proof(last.size, r.size(), r.tiles.source());
  auto served = merkle_frontier::from(last.size, r.tiles.source());
  if (!proof || !served)
    return fail("log: missing tiles: {}", (proof ? served.why() : proof.why()).text);
  const hash32 continued = served->root();
  if (continued == last.root ||
      !verify_consistency(last.size, r.size(), *proof, continued, r.note.head.root))
    return altered;
  evidence_ = log_evidence{.what = "fork",
                           .earlier = memory_->note,
                           .later = r.note,
                           .continued = continued,
                           .consistency = *std::move(proof)};
  return fail("log: fork: the head of {} entries does not continue that of {}; keep the evidence",
              r.size(), last.size);
}

result<void> log_reader::check_order(reading& r) {
  for (size_t i = 0; i < r.raw.size(); ++i) {
    const uint64_t index = r.first + i;
    auto entry = log_entry::from_bytes(r.raw[i]);
    if (!entry) return fail("log: entry {}: {}", index, entry.why().text);
    const indexed_entry e{index, *std::move(entry)};
    if (const indexed_entry* before = newest_of(r.newest, e.entry.kind)) {
      epoch_index epochs;
      epochs.take(e.entry.kind, before->entry.epoch);
      const epoch_step step = epochs.step(e.entry.kind, e.entry.epoch);
      if (step == epoch_step::repeated) return repeated(r, e);
      if (step == epoch_step::gap)
        return fail("log: gap: {} {} follows {}", name_of(e.entry.kind), e.entry.epoch,
                    before->entry.epoch);
    }
    set_newest(r.newest, e);
    r.entries.push_back(e);
  }
  return {};
}

/// Two entries where there may be one, each with the proof that it is in the head: the one that
/// had the epoch first if this read took it in, else the newest, which had a higher one.
error log_reader::repeated(reading& r, const indexed_entry& again) {
  const indexed_entry* first = newest_of(r.newest, again.entry.kind);
  for (const indexed_entry& e : r.entries)
    if (e.entry.kind == again.entry.kind && e.entry.epoch == again.entry.epoch) first = &e;
  log_evidence made{.what = "duplicate", .later = r.note};
  for (const indexed_entry* e : {first, &again}) {
    auto bytes = e->entry.to_bytes();
    auto proof = inclusion_proof(e->index, r.size(), r.tiles.source());
    if (!proof || !verify_inclusion(leaf_hash(bytes), e->index, r.size(), *proof, r.note.head.root))
      proof = merkle_proof{};
    made.entries.push_back({e->index, std::move(bytes), *std::move(proof)});
  }
  evidence_ = std::move(made);
  return fail("log: duplicate: {} {}, entry {}, comes after {}, entry {}; keep the evidence",
              name_of(again.entry.kind), again.entry.epoch, again.index, first->entry.epoch,
              first->index);
}

result<void> log_reader::check_kinds(const reading& r) const {
  for (log_kind kind : rules_.needed)
    if (!newest_of(r.newest, kind)) return fail("log: missing {}: no such entry", name_of(kind));
  const indexed_entry* newest = newest_of(r.newest, log_kind::roster);
  if (!newest) return {};
  auto roster = roster_summary::from_entry(newest->entry);
  if (!roster) return roster.why();
  if (r.now_s > roster->not_before && r.now_s - roster->not_before > rules_.roster_age_max_s)
    return fail("log: stale roster: epoch {} began {} s ago; at most {}", newest->entry.epoch,
                r.now_s - roster->not_before, rules_.roster_age_max_s);
  return {};
}

}  // namespace lethe
