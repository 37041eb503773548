#include "runtime/hardening/harden.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

extern char** environ;

namespace lethe {

namespace {

/// What this program reads itself, or its own children need.
bool is_known(std::string_view name) {
  constexpr std::array<std::string_view, 8> known{
      "HOME", "LANG", "NOTIFY_SOCKET", "PATH", "TERM", "TMPDIR", "TZ", "XDG_RUNTIME_DIR"};
  return std::ranges::find(known, name) != known.end();
}

bool is_loaders(std::string_view name) {
  return name.starts_with("LD_") || name == "GLIBC_TUNABLES" || name == "GCONV_PATH";
}

}  // namespace

std::vector<std::string> close_environment() {
  std::vector<std::string> unknown;
  for (char** at = environ; at && *at; ++at) {
    std::string_view word(*at);
    std::string name(word.substr(0, word.find('=')));
    if (!is_known(name)) unknown.push_back(std::move(name));
  }
  for (const auto& name : unknown) ::unsetenv(name.c_str());
  std::erase_if(unknown, [](const std::string& name) { return !is_loaders(name); });
  return unknown;
}

bool give_up_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return ::syscall(SYS_capset, &head, none) == 0;
}

#ifdef LETHE_SANITIZED
result<void> refuse_dumps() { return {}; }
#else
result<void> refuse_dumps() {
  rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0)
    return fail("core dumps can't be switched off: {}", std::strerror(errno));
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    return fail("this process can't be closed to debuggers: {}", std::strerror(errno));
  return {};
}
#endif

}  // namespace lethe
