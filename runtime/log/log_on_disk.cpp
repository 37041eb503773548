#include "runtime/log/log_on_disk.hpp"

#include "runtime/log/be_fields.hpp"
#include "runtime/log/log_limits.hpp"

namespace lethe {

namespace {

result<signed_head> read_note(const std::filesystem::path& path) {
  auto text = read_text(path, limits::log_note_bytes_max);
  if (!text) return text.why();
  auto note = signed_head::parse(*text);
  if (!note) return fail("{}: {}", path.string(), note.why().text);
  return note;
}

}  // namespace

/// In the order against the writer's, so that what is read first is never ahead of what comes last.
result<log_on_disk> log_on_disk::read(const std::filesystem::path& folder) {
  std::optional<signed_head> published;
  if (std::filesystem::exists(folder / "checkpoint")) {
    auto note = read_note(folder / "checkpoint");
    if (!note) return note.why();
    published = *std::move(note);
  }
  auto head = read_note(folder / "head");
  if (!head) return head.why();
  auto file = mapped_file::open(folder / "entries");
  if (!file) return file.why();
  log_on_disk log(*std::move(file));
  log.head_ = *std::move(head);
  log.published_ = std::move(published);
  field_reader in(log.file_.bytes());
  while (log.entries_.size() < log.head_.head.size) {
    bytes_view entry = in.sized();
    if (!in.good()) break;
    log.entries_.push_back(entry);
  }
  return log;
}

}  // namespace lethe
