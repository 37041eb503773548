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

class two_files final : public wallet_disk {
 public:
  two_files(fs::path file, locked_file journal)
      : file_(std::move(file)), journal_(std::move(journal)) {}

  result<std::optional<std::vector<std::byte>>> read_file() override {
    if (auto ok = sync_folder(file_.parent_path()); !ok) return ok.why();
    std::error_code failed;
    if (!fs::exists(file_, failed)) {
      if (failed) return fail("{}: {}", file_.string(), failed.message());
      return std::optional<std::vector<std::byte>>();
    }
    return read(file_);
  }
  result<void> replace_file(bytes_view bytes) override { return write_durable(file_, bytes, 0600); }
  result<std::vector<std::byte>> read_journal() override {
    auto all = read(journal_of(file_));
    if (!all) return all.why();
    return **std::move(all);
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
  static result<std::optional<std::vector<std::byte>>> read(const fs::path& path) {
    auto mapped = mapped_file::open(path);
    if (!mapped) return mapped.why();
    return std::optional(std::vector<std::byte>(mapped->bytes().begin(), mapped->bytes().end()));
  }

  fs::path file_;
  locked_file journal_;
};

}  // namespace

result<std::unique_ptr<wallet_disk>> open_wallet_disk(const fs::path& file) {
  auto journal = locked_file::open(journal_of(file));
  if (!journal) return journal.why();
  if (::fchmod(journal->fd(), 0600) != 0)
    return fail("{}: cannot keep others out: {}", journal_of(file).string(), std::strerror(errno));
  return std::unique_ptr<wallet_disk>(new two_files(file, *std::move(journal)));
}

}  // namespace lethe
