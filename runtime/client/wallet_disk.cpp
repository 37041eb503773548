#include "runtime/client/wallet_disk.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/durable_file.hpp"
#include "runtime/base/locked_file.hpp"
#include "runtime/base/mapped_file.hpp"

namespace lethe {

namespace {

namespace fs = std::filesystem;

fs::path journal_of(fs::path file) { return file += ".journal"; }

using file_bytes = std::optional<std::vector<std::byte>>;

/// Nothing: it is not there.
result<file_bytes> read(const fs::path& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    if (failed) return fail("{}: {}", path.string(), failed.message());
    return file_bytes();
  }
  auto mapped = mapped_file::open(path);
  if (!mapped) return mapped.why();
  return file_bytes(std::vector<std::byte>(mapped->bytes().begin(), mapped->bytes().end()));
}

class two_files final : public wallet_disk {
 public:
  two_files(fs::path file, locked_file journal)
      : file_(std::move(file)), journal_(std::move(journal)) {}

  result<file_bytes> read_file() override {
    if (auto ok = sync_folder(file_.parent_path()); !ok) return ok.why();
    return read(file_);
  }
  result<void> replace_file(bytes_view bytes) override { return write_durable(file_, bytes, 0600); }
  result<std::vector<std::byte>> read_journal() override {
    auto all = read(journal_of(file_));
    if (!all) return all.why();
    return all->value_or(std::vector<std::byte>());
  }
  result<void> write_journal(uint64_t at, bytes_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t wrote = ::pwrite(journal_.fd(), bytes.data(), bytes.size(), off_t(at));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return cannot_write();
      at += size_t(wrote);
      bytes = bytes.subspan(size_t(wrote));
    }
    return {};
  }
  result<void> sync_journal() override {
    if (::fdatasync(journal_.fd()) != 0) return cannot_write();
    return {};
  }

 private:
  error cannot_write() const {
    return fail("{}: cannot write: {}", journal_of(file_).string(), std::strerror(errno));
  }

  fs::path file_;
  locked_file journal_;
};

/// What is written stays undone.
class only_read final : public wallet_disk {
 public:
  explicit only_read(fs::path file) : file_(std::move(file)) {}
  result<file_bytes> read_file() override { return read(file_); }
  result<void> replace_file(bytes_view) override { return {}; }
  result<std::vector<std::byte>> read_journal() override {
    auto all = read(journal_of(file_));
    if (!all) return all.why();
    return all->value_or(std::vector<std::byte>());
  }
  result<void> write_journal(uint64_t, bytes_view) override { return {}; }
  result<void> sync_journal() override { return {}; }

 private:
  fs::path file_;
};

}  // namespace

result<std::unique_ptr<wallet_disk>> open_wallet_disk(const fs::path& file) {
  auto journal = locked_file::open(journal_of(file));
  if (!journal && journal.why().text.ends_with(locked_file::taken))
    return fail(
        "{}; a `lethe proxy` or `lethe chat` that runs may: ask through that proxy, end it, or use "
        "a trust file that names another wallet",
        journal.why().text);
  if (!journal) return journal.why();
  if (::fchmod(journal->fd(), 0600) != 0)
    return fail("{}: cannot keep others out: {}", journal_of(file).string(), std::strerror(errno));
  return std::unique_ptr<wallet_disk>(new two_files(file, *std::move(journal)));
}

std::unique_ptr<wallet_disk> view_wallet_disk(const fs::path& file) {
  return std::make_unique<only_read>(file);
}

}  // namespace lethe
