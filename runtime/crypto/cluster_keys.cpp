#include "runtime/crypto/cluster_keys.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/durable_file.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/base/wipe.hpp"
#include "runtime/crypto/certificate.hpp"

namespace lethe {

namespace {

namespace fs = std::filesystem;

constexpr size_t pem_bytes_max = 1 << 16;

/// Creates, never overwrites. On the disk before we say so.
result<void> write_new(const fs::path& path, const std::string& text, mode_t mode) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return fail("{}: cannot create: {}", path.string(), std::strerror(errno));
  bool good = ::write(fd, text.data(), text.size()) == ssize_t(text.size()) && ::fsync(fd) == 0;
  int reason = errno;
  ::close(fd);
  if (good) return {};
  ::unlink(path.c_str());
  return fail("{}: cannot write: {}", path.string(), std::strerror(reason));
}

/// The key first: a certificate without its key would be kept, and be useless.
result<void> write_identity(const fs::path& folder, const std::string& name, const identity& who,
                            key_report& report) {
  fs::path key = folder / (name + ".key"), certificate = folder / (name + ".crt");
  std::string secret = pem_of(who.key.get());
  auto written = write_new(key, secret, 0600);
  wipe(secret.data(), secret.size());
  if (!written) return written;
  if (auto ok = write_new(certificate, pem_of(who.certificate.get()), 0644); !ok) {
    ::unlink(key.c_str());  // alone it would be in the way of the next try
    return ok;
  }
  report.written.push_back(key);
  report.written.push_back(certificate);
  return {};
}

result<identity> read_identity(const fs::path& folder, const std::string& name) {
  auto certificate = read_text(folder / (name + ".crt"), pem_bytes_max);
  if (!certificate) return certificate.why();
  auto key = read_text(folder / (name + ".key"), pem_bytes_max);
  if (!key) return key.why();
  auto read = identity_of(*certificate, *key);
  wipe(key->data(), key->size());
  if (!read) return fail("{}: {}", (folder / (name + ".crt")).string(), read.why().text);
  return read;
}

bool is_there(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  return fs::exists(folder / (name + ".crt"), ignored) ||
         fs::exists(folder / (name + ".key"), ignored);
}

result<identity> authority_in(const fs::path& folder, const std::string& cluster, uint32_t days,
                              key_report& report) {
  if (is_there(folder, "ca")) {
    report.kept.push_back(folder / "ca.crt");
    return read_identity(folder, "ca");
  }
  auto made = make_authority(cluster + " authority", days);
  if (!made) return made;
  if (auto ok = write_identity(folder, "ca", *made, report); !ok) return ok.why();
  return made;
}

}  // namespace

result<key_report> make_cluster_keys(const fs::path& folder, const std::string& cluster,
                                     const std::vector<named_host>& hosts, uint32_t days) {
  if (auto ok = make_folder(folder); !ok) return ok.why();
  std::error_code wrong;
  fs::permissions(folder, fs::perms::owner_all, wrong);
  key_report report;
  auto authority = authority_in(folder, cluster, days, report);
  if (!authority) return authority.why();
  for (const auto& host : hosts) {
    if (is_there(folder, host.name)) {
      auto known = read_identity(folder, host.name);
      if (!known) return known.why();
      report.kept.push_back(folder / (host.name + ".crt"));
      continue;
    }
    auto made = make_host(*authority, host.name, host.address, days);
    if (!made) return made.why();
    if (auto ok = write_identity(folder, host.name, *made, report); !ok) return ok.why();
  }
  if (auto ok = sync_folder(folder); !ok) return ok.why();
  return report;
}

}  // namespace lethe
