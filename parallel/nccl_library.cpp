#include "parallel/nccl_library.hpp"

#include <dlfcn.h>

#include <array>

namespace lethe {
namespace {

/// Finds one function of the library; the first that is missing is the reason.
class finder {
 public:
  finder(void* library, const std::string& path) : library_(library), path_(path) {}

  template <class Function>
  void find(const char* name, Function*& into) {
    into = reinterpret_cast<Function*>(dlsym(library_, name));
    if (into == nullptr && all_)
      all_ = fail("nccl: {} has no {}; install NCCL 2.28 or later", path_, name);
  }
  const result<void>& all() const { return all_; }

 private:
  void* const library_;
  const std::string& path_;
  result<void> all_;
};

}  // namespace

result<nccl_functions> load_nccl(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return fail("nccl: cannot load {}: {}; install NCCL 2.28 or later where the loader finds it",
                path, why != nullptr ? why : "no reason given");
  }
  nccl_functions f{};
  finder in(library, path);
  in.find("ncclGetVersion", f.get_version);
  in.find("ncclGetUniqueId", f.get_unique_id);
  in.find("ncclCommInitRankConfig", f.init);
  in.find("ncclCommSplit", f.split);
  in.find("ncclCommGetAsyncError", f.async_error);
  in.find("ncclCommFinalize", f.finalize);
  in.find("ncclCommDestroy", f.destroy);
  in.find("ncclCommAbort", f.abort);
  in.find("ncclMemAlloc", f.mem_alloc);
  in.find("ncclMemFree", f.mem_free);
  in.find("ncclCommWindowRegister", f.window_register);
  in.find("ncclCommWindowDeregister", f.window_deregister);
  in.find("ncclGroupStart", f.group_start);
  in.find("ncclGroupEnd", f.group_end);
  in.find("ncclAllReduce", f.all_reduce);
  in.find("ncclAllGather", f.all_gather);
  in.find("ncclReduceScatter", f.reduce_scatter);
  in.find("ncclBroadcast", f.broadcast);
  in.find("ncclSend", f.send);
  in.find("ncclRecv", f.recv);
  if (!in.all()) return in.all().why();
  int version = 0;
  if (f.get_version(&version) != nccl_status::success) version = 0;
  if (auto known = check_nccl_version(version); !known) return known.why();
  return f;
}

result<void> check_nccl_version(int version) {
  if (version >= 22800 && version < 30000) return {};
  return fail("nccl: version {}.{}.{} is not one that Lethe knows; install 2.28 or a later 2.x",
              version / 10000, version / 100 % 100, version % 100);
}

std::string_view name_of(nccl_call call) {
  constexpr std::array<std::string_view, 18> names{"ncclGetUniqueId",
                                                   "ncclCommInitRankConfig",
                                                   "ncclCommSplit",
                                                   "ncclMemAlloc",
                                                   "ncclMemFree",
                                                   "ncclCommWindowRegister",
                                                   "ncclCommWindowDeregister",
                                                   "ncclAllReduce",
                                                   "ncclAllGather",
                                                   "ncclReduceScatter",
                                                   "ncclBroadcast",
                                                   "ncclSend",
                                                   "ncclRecv",
                                                   "its wipe",
                                                   "what was under way",
                                                   "ncclCommFinalize",
                                                   "ncclCommDestroy",
                                                   "ncclCommAbort"};
  return size_t(call) < names.size() ? names[size_t(call)] : "a call";
}

std::string_view nccl_words(uint32_t status) {
  switch (nccl_status(status)) {
    case nccl_status::unhandled_cuda_error:
      return "a CUDA call failed; see its GPU and driver";
    case nccl_status::system_error:
      return "a system call failed; see its network, shared memory and limits";
    case nccl_status::invalid_argument:
    case nccl_status::invalid_usage:
      return "the call was refused; see that every rank has a GPU of its own and the same NCCL";
    case nccl_status::remote_error:
      return "another rank or the network is gone; see the other ranks";
    default:
      return "an internal check failed; see its GPU, driver and NCCL's version";
  }
}

}  // namespace lethe
