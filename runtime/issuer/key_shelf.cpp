#include "runtime/issuer/key_shelf.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "runtime/base/durable_file.hpp"
#include "runtime/store/key_file.hpp"

namespace lethe {

namespace fs = std::filesystem;

namespace {

constexpr key_length pem_length{1000, 4096};  // RSA-2048 has about 1700
constexpr std::string_view name_begin = "key-", name_end = ".pem", gone_end = ".gone";

std::optional<uint32_t> epoch_named(const std::string& name) {
  std::string_view text = name;
  if (!text.starts_with(name_begin) || !text.ends_with(name_end)) return {};
  text.remove_prefix(name_begin.size());
  text.remove_suffix(name_end.size());
  uint32_t epoch = 0;
  auto [rest, wrong] = std::from_chars(text.data(), text.data() + text.size(), epoch);
  if (wrong != std::errc() || rest != text.data() + text.size()) return {};
  return epoch;
}

result<std::vector<fs::path>> names_in(const fs::path& folder) {
  std::error_code why;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, why), end; !why && at != end; at.increment(why))
    found.push_back(at->path());
  if (why) return fail("{}: cannot be read: {}", folder.string(), why.message());
  return found;
}

/// Disks that write in place keep nothing of it; of others nobody can promise that.
result<void> shred(const fs::path& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  const std::string zeroes(pem_length.most, '\0');
  bool done = fd >= 0 && ::write(fd, zeroes.data(), zeroes.size()) == ssize_t(zeroes.size()) &&
              ::fsync(fd) == 0 && ::unlink(path.c_str()) == 0;
  auto why = fail("{}: cannot be destroyed: {}", path.string(), std::strerror(errno));
  if (fd >= 0) ::close(fd);
  if (!done) return why;
  return {};
}

bool is_there(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace

key_shelf::key_shelf(fs::path folder, uint32_t epoch_s)
    : folder_(std::move(folder)), epoch_s_(epoch_s) {}

fs::path key_shelf::path_of(uint32_t epoch) const {
  return folder_ / fmt::format("{}{}{}", name_begin, epoch, name_end);
}

result<issuer_key> key_shelf::keep(uint32_t epoch, const std::vector<dated_key>& others) const {
  auto taken = [&](uint8_t short_id) {
    return std::ranges::any_of(
        others, [=](const dated_key& k) { return k.key.published().short_id() == short_id; });
  };
  auto pem = keep_key(path_of(epoch), pem_length, [&]() -> result<secret_bytes> {
    auto made = issuer_key::make();
    while (taken(made.published().short_id())) made = issuer_key::make();
    return made.pem();
  });
  if (!pem) return pem.why();
  auto key = issuer_key::from_pem(pem->text());
  if (!key) return fail("{}: {}", path_of(epoch).string(), key.why().text);
  return key;
}

result<token_issuer> key_shelf::live_in(uint32_t epoch) const {
  const uint32_t first = epoch > 0 ? epoch - 1 : 0;
  std::vector<dated_key> keys;
  for (bool missing : {false, true})  // a new key's id differs from those of all that are there
    for (uint32_t e = first; e <= epoch + 1; ++e) {
      if (is_there(path_of(e)) == missing || (missing && e < epoch)) continue;
      auto key = keep(e, keys);
      if (!key) return key.why();
      keys.push_back({e, *std::move(key)});
    }
  token_issuer live;
  for (auto& k : keys)
    if (auto ok = live.add(std::move(k.key), begin_of(k.epoch)); !ok)
      return fail("{}: {}", path_of(k.epoch).string(), ok.why().text);
  return live;
}

result<std::vector<uint32_t>> key_shelf::before(uint32_t epoch) const {
  auto names = names_in(folder_);
  if (!names) return names.why();
  std::vector<uint32_t> found;
  for (const auto& n : *names)
    if (auto e = epoch_named(n.filename().string()); e && *e < epoch) found.push_back(*e);
  std::ranges::sort(found);
  return found;
}

result<hash32> key_shelf::id_of(uint32_t epoch) const {
  auto pem = read_key(path_of(epoch), pem_length);
  if (!pem) return pem.why();
  auto key = issuer_key::from_pem(pem->text());
  if (!key) return fail("{}: {}", path_of(epoch).string(), key.why().text);
  return key->published().id();
}

/// A key that is half overwritten must not pass for one: it has another name by then.
result<void> key_shelf::destroy(uint32_t epoch) const {
  auto gone = path_of(epoch);
  gone.replace_extension(gone_end);
  if (::rename(path_of(epoch).c_str(), gone.c_str()) != 0)
    return fail("{}: cannot be renamed: {}", path_of(epoch).string(), std::strerror(errno));
  if (auto ok = sync_folder(folder_); !ok) return ok;
  return sweep();
}

result<void> key_shelf::sweep() const {
  auto names = names_in(folder_);
  if (!names) return names.why();
  for (const auto& n : *names) {
    if (n.extension() != gone_end) continue;
    if (auto ok = shred(n); !ok) return ok;
  }
  return sync_folder(folder_);
}

}  // namespace lethe
