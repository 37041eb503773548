#include "runtime/publish/check_log_folder.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "runtime/base/base64.hpp"
#include "runtime/log/log_on_disk.hpp"
#include "runtime/log/merkle.hpp"
#include "runtime/log/roster.hpp"
#include "runtime/publish/entry_facts.hpp"
#include "runtime/publish/publisher.hpp"

namespace lethe {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t rosters_kept_s = 90 * 86'400;

/// By number. Files of other names are nobody's claim.
result<std::map<uint32_t, fs::path>> roster_files(const fs::path& folder) {
  std::map<uint32_t, fs::path> all;
  if (folder.empty()) return all;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::string name = at->path().filename().string();
    uint32_t number = 0;
    auto [stop, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (wrong == std::errc() && fmt::format("{:010}", number) == name) all[number] = at->path();
  }
  if (failed) return fail("{}: {}", folder.string(), failed.message());
  return all;
}

/// One check after the other; each adds its line or says what is wrong.
class folder_check {
 public:
  folder_check(const published_folder& folder, const note_trust& trust, log_checks& to)
      : folder_(folder), trust_(trust), to_(to) {}

  /// Rosters are listed first: what is written meanwhile is then logged, or left out.
  result<void> run() {
    auto files = roster_files(folder_.rosters);
    if (!files) return files.why();
    files_ = *std::move(files);
    auto log = log_on_disk::read(folder_.log);
    if (!log) return log.why();
    log_.emplace(*std::move(log));
    for (auto step : {&folder_check::head, &folder_check::entries, &folder_check::checkpoint,
                      &folder_check::epochs, &folder_check::contents, &folder_check::rosters})
      if (auto ok = (this->*step)(); !ok) return ok;
    return {};
  }

 private:
  template <class... Args>
  result<void> good(const char* what, fmt::format_string<Args...> format, Args&&... args) {
    to_.good.push_back({what, fmt::format(format, std::forward<Args>(args)...)});
    return {};
  }
  std::string at(const char* file) const { return (folder_.log / file).string(); }
  result<void> head();
  result<void> entries();
  result<void> checkpoint();
  result<void> epochs();
  result<void> contents();
  result<void> rosters();
  result<void> roster_file(uint32_t number, const fs::path& path) const;

  const published_folder& folder_;
  const note_trust& trust_;
  log_checks& to_;
  std::map<uint32_t, fs::path> files_;
  std::optional<log_on_disk> log_;
  merkle_tree tree_;
  std::vector<log_entry> parsed_;
  std::map<uint32_t, const log_entry*> rosters_;  // by epoch, of `parsed_`
};

result<void> folder_check::head() {
  if (auto ok = verify_head(log_->head(), trust_.log); !ok)
    return fail("{}: {}", at("head"), ok.why().text);
  return good("head", "{} entries, root {}, signed by {}", log_->head().head.size,
              to_base64(log_->head().head.root), trust_.log.name());
}

result<void> folder_check::entries() {
  const uint64_t counted = log_->head().head.size, there = log_->entries().size();
  if (there < counted)
    return fail("{}: {} whole entries are there, the head counts {}: what is missing was removed",
                at("entries"), there, counted);
  for (bytes_view e : log_->entries()) tree_.append(leaf_hash(e));
  if (tree_.root() != log_->head().head.root)
    return fail("{}: they do not make the signed root: one was altered, put in or removed",
                at("entries"));
  return good("entries", "all {} make that root", there);
}

result<void> folder_check::checkpoint() {
  if (!log_->published())
    return fail("{}: is missing: no head was ever published", at("checkpoint"));
  const signed_head& note = *log_->published();
  auto times = verify_head(note, trust_);
  if (!times) return fail("{}: {}", at("checkpoint"), times.why().text);
  if (note.head.size > tree_.size())
    return fail("{}: has {} entries, the log only {}: it is an old copy", at("checkpoint"),
                note.head.size, tree_.size());
  if (note.head.root != tree_.root(note.head.size))
    return fail("{}: log: fork: it signs other entries than the log's", at("checkpoint"));
  std::vector<std::string> names;
  for (const note_key& w : trust_.witnesses)
    if (verify_head(note, note_trust{trust_.log, {w}, 1})) names.push_back(w.name());
  return good("checkpoint", "{} entries, cosigned by {} ({} of {} witnesses, {} must){}",
              note.head.size, names.empty() ? "nobody" : fmt::format("{}", fmt::join(names, ", ")),
              names.size(), trust_.witnesses.size(), trust_.quorum,
              times->empty() ? "" : ", last at " + utc_text(times->back()));
}

/// One entry for each kind and epoch, none left out.
result<void> folder_check::epochs() {
  epoch_index index;
  std::map<log_kind, std::pair<uint32_t, uint32_t>> spans;
  for (size_t i = 0; i < log_->entries().size(); ++i) {
    auto e = log_entry::from_bytes(log_->entries()[i]);
    if (!e) return fail("{}: entry {}: {}", at("entries"), i, e.why().text);
    const epoch_step step = index.step(e->kind, e->epoch);
    if (step != epoch_step::next)
      return fail("{}: log: {}: entry {} is {} {}, after {}", at("entries"),
                  step == epoch_step::gap ? "gap" : "duplicate", i, name_of(e->kind), e->epoch,
                  *index.last(e->kind));
    index.take(e->kind, e->epoch);
    spans.try_emplace(e->kind, e->epoch, 0).first->second.second = e->epoch;
    parsed_.push_back(*std::move(e));
  }
  std::string text;
  for (const auto& [kind, span] : spans)
    text += fmt::format("{}{} {} to {}", text.empty() ? "" : ", ", name_of(kind), span.first,
                        span.second);
  return good("epochs", "{}: each once, none left out", text);
}

result<void> folder_check::contents() {
  for (size_t i = 0; i < parsed_.size(); ++i) {
    if (auto said = facts_of(parsed_[i]); !said)
      return fail("{}: entry {}, {} {}: {}", at("entries"), i, name_of(parsed_[i].kind),
                  parsed_[i].epoch, said.why().text);
    if (parsed_[i].kind == log_kind::roster) rosters_[parsed_[i].epoch] = &parsed_[i];
  }
  return good("contents", "every entry says what its kind may say");
}

result<void> folder_check::roster_file(uint32_t number, const fs::path& path) const {
  auto logged = rosters_.find(number);
  if (logged == rosters_.end()) return fail("{}: the log has no roster {}", path.string(), number);
  auto bytes = read_text(path, roster_bytes_max);
  if (!bytes) return bytes.why();
  auto whole = verify_roster(as_bytes(*bytes), *logged->second);
  if (!whole) return fail("{}: {}", path.string(), whole.why().text);
  return {};
}

result<void> folder_check::rosters() {
  if (folder_.rosters.empty()) return good("rosters", "none lie beside this log: not checked");
  const uint32_t last = rosters_.empty() ? 0 : rosters_.rbegin()->first;
  files_.erase(last + 1);  // a roster lies there before it is logged
  for (const auto& [number, path] : files_)
    if (auto ok = roster_file(number, path); !ok) return ok;
  if (rosters_.empty()) return good("rosters", "none yet");
  const uint64_t newest = roster_summary::from_entry(*rosters_.rbegin()->second)->not_before;
  for (const auto& [number, entry] : rosters_)
    if (!files_.contains(number) &&
        roster_summary::from_entry(*entry)->not_before + rosters_kept_s > newest)
      return fail("{}: roster {} is missing: each is kept for 90 days", folder_.rosters.string(),
                  number);
  return good("rosters", "{} of {} are here, and each makes its logged root", files_.size(),
              rosters_.size());
}

}  // namespace

result<published_folder> published_folder::find(const fs::path& folder) {
  std::error_code ignored;
  auto has = [&](const fs::path& p) { return fs::exists(p, ignored); };
  auto log = has(folder / "log" / "head") ? folder / "log" : folder;
  if (!has(log / "head"))
    return fail("{}: holds no log: neither `log/head` nor `head` is there", folder.string());
  auto rosters = fs::absolute(log).lexically_normal();
  if (!rosters.has_filename()) rosters = rosters.parent_path();  // "log/"
  rosters = rosters.parent_path() / "rosters";
  if (!has(rosters)) rosters.clear();
  return published_folder{std::move(log), std::move(rosters)};
}

log_checks check_log_folder(const published_folder& folder, const note_trust& trust) {
  log_checks checks;
  if (auto ok = folder_check(folder, trust, checks).run(); !ok) checks.wrong = ok.why();
  return checks;
}

}  // namespace lethe
