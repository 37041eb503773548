// Preloaded into `lethe` by a test: the next message of the actor that a file names makes it throw.
// The file, LETHE_TEST_THROWS, is taken away first, so that it happens once.
#include <dlfcn.h>
#include <unistd.h>

#include <caf/all.hpp>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

namespace {

const char* const file = std::getenv("LETHE_TEST_THROWS");  // before the program closes it

/// Whether the file names this actor and was ours to take.
bool is_due(const char* name) {
  if (!file || ::access(file, R_OK) != 0) return false;
  std::string wanted;
  std::ifstream(file) >> wanted;
  return wanted == name && ::unlink(file) == 0;
}

}  // namespace

namespace caf {

invoke_message_result scheduled_actor::consume(mailbox_element& x) {
  using function = invoke_message_result (*)(scheduled_actor*, mailbox_element&);
  static auto next = reinterpret_cast<function>(
      ::dlsym(RTLD_NEXT, "_ZN3caf15scheduled_actor7consumeERNS_15mailbox_elementE"));
  if (is_due(name())) {
    current_element_ = &x;  // as when a handler throws: whoever asked is answered with an error
    throw std::bad_alloc();
  }
  return next(this, x);
}

}  // namespace caf
