// Preloaded into `lethe` by a test: who waits for a child waits for ever.
#include <sys/wait.h>
#include <unistd.h>

extern "C" int waitid(idtype_t, id_t, siginfo_t*, int) {
  while (true) ::pause();
}
