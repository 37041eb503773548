#include "runtime/log/log_file.hpp"

#include <unistd.h>

#include <cerrno>

#include "runtime/base/durable_file.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/log/be_fields.hpp"
#include "runtime/log/log_limits.hpp"

namespace lethe {

namespace {

namespace fs = std::filesystem;

error cannot(const fs::path& path, const char* what) {
  return fail("{}: cannot {}: {}", path.string(), what, std::strerror(errno));
}

result<signed_head> read_note(const fs::path& path) {
  auto text = read_text(path, limits::log_note_bytes_max);
  if (!text) return text.why();
  auto note = signed_head::parse(*text);
  if (!note) return fail("{}: {}", path.string(), note.why().text);
  return note;
}

}  // namespace

result<log_file> log_file::create(const fs::path& folder, note_signer signer) {
  std::error_code wrong;
  if (auto ok = make_folder(folder); !ok) return ok.why();
  auto entries = locked_file::open(folder / "entries");
  if (!entries) return entries.why();
  log_file log(folder, std::move(signer), *std::move(entries));
  if (fs::exists(folder / "head") || fs::file_size(folder / "entries", wrong) != 0)
    return fail("{}: holds a log already; open it, or take another folder", folder.string());
  tree_head empty{.origin = log.signer_.key().name(), .root = log.tree_.root()};
  if (auto ok = log.set_head({empty, {sign_head(log.signer_, empty)}}); !ok) return ok.why();
  return log;
}

result<log_file> log_file::open(const fs::path& folder, note_signer signer) {
  if (!fs::exists(folder / "head"))
    return fail("{}: no head of a log is there; bring the folder back from a copy",
                folder.string());
  auto entries = locked_file::open(folder / "entries");
  if (!entries) return entries.why();
  log_file log(folder, std::move(signer), *std::move(entries));
  if (auto ok = log.read_heads(); !ok) return ok.why();
  if (auto ok = log.read_entries(); !ok) return ok.why();
  if (auto ok = log.check_ours(log.head_, "head"); !ok) return ok.why();
  if (log.published_)
    if (auto ok = log.check_ours(*log.published_, "checkpoint"); !ok) return ok.why();
  return log;
}

result<void> log_file::read_heads() {
  auto head = read_note(folder_ / "head");
  if (!head) return head.why();
  head_ = *std::move(head);
  if (!fs::exists(folder_ / "checkpoint")) return {};
  auto published = read_note(folder_ / "checkpoint");
  if (!published) return published.why();
  published_ = *std::move(published);
  return {};
}

/// As many as the head says, and cuts off what a crash left behind them.
result<void> log_file::read_entries() {
  const fs::path path = folder_ / "entries";
  auto file = mapped_file::open(path);
  if (!file) return file.why();
  field_reader in(file->bytes());
  while (tree_.size() < head_.head.size) {
    bytes_view bytes = in.sized();
    auto entry = log_entry::from_bytes(bytes);
    if (!in.good() || !entry)
      return fail("{}: entry {} of {} is damaged; bring the folder back from a copy", path.string(),
                  tree_.size(), head_.head.size);
    take(*entry, bytes);
  }
  if (!in.rest().empty() && ::ftruncate(entries_.fd(), off_t(end_bytes())) != 0)
    return cannot(path, "cut");
  return {};
}

/// That a note is ours and tells of these entries.
result<void> log_file::check_ours(const signed_head& note, const char* file) const {
  if (auto ok = verify_head(note, signer_.key()); !ok)
    return fail("{}: {}", (folder_ / file).string(), ok.why().text);
  if (note.head.size > tree_.size() || note.head.root != tree_.root(note.head.size))
    return fail("{}: it signs other entries than this log's", (folder_ / file).string());
  return {};
}

void log_file::take(const log_entry& entry, bytes_view bytes) {
  ends_.push_back(end_bytes() + 2 + bytes.size());
  tree_.append(leaf_hash(bytes));
  epochs_.take(entry.kind, entry.epoch);
}

result<void> log_file::check_next(std::span<const log_entry> entries) const {
  epoch_index epochs = epochs_;
  for (const log_entry& e : entries) {
    if (e.payload.size() > log_payload_bytes_max)
      return fail("log: {} {} has {} bytes; at most {}", name_of(e.kind), e.epoch, e.payload.size(),
                  log_payload_bytes_max);
    const epoch_step step = epochs.step(e.kind, e.epoch);
    if (step == epoch_step::repeated)
      return fail("log: {} {} would be a duplicate; {} is the last", name_of(e.kind), e.epoch,
                  *epochs.last(e.kind));
    if (step == epoch_step::gap)
      return fail("log: {} {} would leave a gap; {} is the last", name_of(e.kind), e.epoch,
                  *epochs.last(e.kind));
    epochs.take(e.kind, e.epoch);
  }
  return {};
}

result<signed_head> log_file::append(std::span<const log_entry> entries) {
  if (broken_) return fail("{}: a write failed; open the log again", folder_.string());
  if (entries.size() > limits::log_entries_max - tree_.size())
    return fail("log: more than {} entries", limits::log_entries_max);
  if (auto ok = check_next(entries); !ok) return ok.why();
  std::vector<std::byte> tail;
  auto next = *merkle_frontier::from(tree_.size(), tree_.source());
  for (const log_entry& e : entries) {
    const auto bytes = e.to_bytes();
    append_sized(tail, bytes);
    next.append(leaf_hash(bytes));
  }
  broken_ = true;  // until all of it is on the disk
  if (auto ok = write_tail(tail); !ok) return ok.why();
  tree_head head{signer_.key().name(), next.size(), next.root()};
  if (auto ok = set_head({head, {sign_head(signer_, head)}}); !ok) return ok.why();
  for (const log_entry& e : entries) take(e, e.to_bytes());
  broken_ = false;
  return head_;
}

result<void> log_file::write_tail(bytes_view tail) {
  const fs::path path = folder_ / "entries";
  for (uint64_t at = end_bytes(); !tail.empty();) {
    const ssize_t wrote = ::pwrite(entries_.fd(), tail.data(), tail.size(), off_t(at));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return cannot(path, "write");
    at += uint64_t(wrote);
    tail = tail.subspan(size_t(wrote));
  }
  if (::fdatasync(entries_.fd()) != 0) return cannot(path, "write");
  return {};
}

result<void> log_file::set_head(signed_head next) {
  if (auto ok = write_durable(folder_ / "head", as_bytes(next.text())); !ok) return ok;
  head_ = std::move(next);
  return {};
}

result<void> log_file::publish(const signed_head& cosigned) {
  if (auto ok = check_ours(cosigned, "checkpoint"); !ok) return ok;
  if (published_ && cosigned.head.size < published_->head.size)
    return fail("log: readers have had a head of {} entries; one of {} would go back",
                published_->head.size, cosigned.head.size);
  const std::string text = cosigned.text();
  if (text.size() > limits::log_note_bytes_max ||
      cosigned.signatures.size() > limits::log_signatures_max)
    return fail("log: a head with more signatures than readers take");
  if (auto ok = write_durable(folder_ / "checkpoint", as_bytes(text)); !ok) return ok;
  published_ = cosigned;
  return {};
}

merkle_proof log_file::consistency(uint64_t old_size) const {
  return *consistency_proof(old_size, tree_.size(), tree_.source());
}

result<std::vector<std::byte>> log_file::bundle(uint64_t first, uint32_t count) const {
  const uint64_t begin = first == 0 ? 0 : ends_[size_t(first) - 1];
  std::vector<std::byte> out(size_t(ends_[size_t(first) + count - 1] - begin));
  for (size_t got = 0; got < out.size();) {
    const ssize_t read =
        ::pread(entries_.fd(), out.data() + got, out.size() - got, off_t(begin + got));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return cannot(folder_ / "entries", "read");
    got += size_t(read);
  }
  return out;
}

result<log_entry> log_file::entry(uint64_t index) const {
  if (index >= tree_.size()) return fail("log: entry {} of {}", index, tree_.size());
  auto bytes = bundle(index, 1);
  if (!bytes) return bytes.why();
  return log_entry::from_bytes(bytes_view(*bytes).subspan(2));
}

result<std::vector<std::byte>> log_file::fetch(std::string_view path) const {
  std::vector<std::byte> out;
  if (path == "checkpoint") {
    if (!published_) return fail("log: no head is published yet");
    lethe::append(out, as_bytes(published_->text()));
    return out;
  }
  auto tile = tile_path::parse(path);
  if (!tile) return tile.why();
  const auto& row = tree_.level(tile->level * tile_levels);
  if (tile->width > tile_width_of(tile->index, row.size()))
    return fail("log: {} is not there yet", path);
  const uint64_t first = tile->index * tile_width;
  if (tile->entries) return bundle(first, tile->width);
  for (uint32_t i = 0; i < tile->width; ++i) lethe::append(out, row[size_t(first + i)]);
  return out;
}

}  // namespace lethe
