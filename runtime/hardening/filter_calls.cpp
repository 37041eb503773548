#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/hardening/harden.hpp"

namespace lethe {

#ifdef LETHE_SANITIZED
result<void> can_filter_calls() { return {}; }
result<void> filter_calls(new_code) { return {}; }
#else
namespace {

#if defined(__x86_64__)
constexpr uint32_t own_arch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t own_arch = AUDIT_ARCH_AARCH64;
#else
#error "which calls are filtered is not known for this processor"
#endif

/// Nobody who serves needs them; each looks into processes, loads code into the kernel, changes
/// what is mounted, or goes round this filter.
constexpr uint32_t never[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_perf_event_open,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_acct,
    SYS_personality,
    SYS_setns,
    SYS_unshare,
    SYS_open_by_handle_at,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
#if defined(__x86_64__)
    SYS_kexec_file_load,
    SYS_modify_ldt,
    SYS_iopl,
    SYS_ioperm,
#endif
};

/// Calls with a flag that makes memory executable, and which argument has it.
struct flagged_call {
  uint32_t number, argument, flag;
};
constexpr flagged_call executable[] = {{SYS_mmap, 2, PROT_EXEC},
                                       {SYS_mprotect, 2, PROT_EXEC},
                                       {SYS_pkey_mprotect, 2, PROT_EXEC},
                                       {SYS_shmat, 2, SHM_EXEC}};

/// A program of the kernel's filter machine; its accumulator holds the call's number between the
/// rules.
class filter_program {
 public:
  explicit filter_program(new_code code) {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, own_arch, 1, 0);
    refuse();
    load_number();
#if defined(__x86_64__)
    jump(BPF_JGE, 0x40000000, 0, 1);  // the same calls by other numbers
    refuse();
#endif
    for (uint32_t number : never) refuse_call(number);
    refuse_being_dumpable();
    if (code == new_code::refused) {
      refuse_call(SYS_execve);
      refuse_call(SYS_execveat);
      for (const auto& call : executable) refuse_flag(call);
    }
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  sock_fprog get() { return {static_cast<unsigned short>(code_.size()), code_.data()}; }

 private:
  void put(uint16_t code, uint32_t k, uint8_t yes = 0, uint8_t no = 0) {
    code_.push_back({code, yes, no, k});
  }
  void load(size_t at) { put(BPF_LD | BPF_W | BPF_ABS, uint32_t(at)); }
  void load_number() { load(offsetof(seccomp_data, nr)); }
  void jump(uint16_t how, uint32_t k, uint8_t yes, uint8_t no) {
    put(uint16_t(BPF_JMP | how | BPF_K), k, yes, no);
  }
  void refuse() { put(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM); }
  void refuse_call(uint32_t number) {
    jump(BPF_JEQ, number, 0, 1);
    refuse();
  }
  void load_argument(uint32_t n) { load(offsetof(seccomp_data, args) + 8 * n); }  // its lower half
  void refuse_flag(const flagged_call& call) {
    jump(BPF_JEQ, call.number, 0, 4);
    load_argument(call.argument);
    jump(BPF_JSET, call.flag, 0, 1);
    refuse();
    load_number();
  }
  /// Children, who inherit this, must be able to say that they are not.
  void refuse_being_dumpable() {
    jump(BPF_JEQ, SYS_prctl, 0, 6);
    load_argument(0);
    jump(BPF_JEQ, PR_SET_DUMPABLE, 0, 3);
    load_argument(1);
    jump(BPF_JEQ, 0, 1, 0);
    refuse();
    load_number();
  }

  std::vector<sock_filter> code_;
};

/// The C library opens these when a name is first looked up.
void load_name_services() {
  std::ifstream file("/etc/nsswitch.conf");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("hosts:")) continue;
    std::istringstream words(line.substr(6));
    for (std::string word; words >> word;)
      if (word.find_first_of("[]=/") == word.npos)
        ::dlopen(("libnss_" + word + ".so.2").c_str(), RTLD_NOW);
  }
}

long seccomp(unsigned what, unsigned flags, void* with) {
  return ::syscall(SYS_seccomp, what, flags, with);
}

}  // namespace

result<void> can_filter_calls() {
  uint32_t action = SECCOMP_RET_ERRNO;
  if (seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0) return {};
  return fail("system calls can't be filtered: {} (the kernel needs CONFIG_SECCOMP_FILTER)",
              std::strerror(errno));
}

result<void> filter_calls(new_code code) {
  if (code == new_code::refused) load_name_services();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail("privileges can't be given up: {}", std::strerror(errno));
  filter_program program(code);
  sock_fprog filter = program.get();
  if (seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0) return {};
  return fail("system calls can't be filtered: {}", std::strerror(errno));
}
#endif

}  // namespace lethe
