// An actor throws at its next message: the first of those that a file names,
// XDG_RUNTIME_DIR/throws, which is taken away, so that it happens once. For an audit, which then
// looks at what is left.
#include <dlfcn.h>
#include <unistd.h>

#include <caf/all.hpp>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

namespace {

/// Whether the file names this actor and was ours to take.
bool is_due(const char* name) {
  static const std::string file = [] {
    const char* folder = std::getenv("XDG_RUNTIME_DIR");
    return folder ? std::string(folder) + "/throws" : std::string();
  }();
  if (file.empty() || ::access(file.c_str(), R_OK) != 0) return false;
  std::string wanted;
  std::ifstream(file) >> wanted;
  return wanted == name && ::unlink(file.c_str()) == 0;
}

}  // namespace

caf::invoke_message_result caf::scheduled_actor::consume(mailbox_element& x) {
  using function = invoke_message_result (*)(scheduled_actor*, mailbox_element&);
  static auto next = reinterpret_cast<function>(
      ::dlsym(RTLD_NEXT, "_ZN3caf15scheduled_actor7consumeERNS_15mailbox_elementE"));
  if (is_due(name())) {
    current_element_ = &x;  // as when a handler throws: whoever asked is answered with an error
    throw std::bad_alloc();
  }
  return next(this, x);
}
