#pragma once

#include <string>
#include <string_view>

#include "parallel/nccl_abi.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// NCCL, as a table: the library's functions, or in tests those that stand for them.
struct nccl_functions {
  nccl_status (*get_version)(int* version);
  nccl_status (*get_unique_id)(nccl_id* id);
  nccl_status (*init)(nccl_comm* made, int size, nccl_id id, int rank, nccl_setup* setup);
  nccl_status (*split)(nccl_comm parent, int color, int key, nccl_comm* made, nccl_setup* setup);
  nccl_status (*async_error)(nccl_comm comm, nccl_status* state);
  nccl_status (*finalize)(nccl_comm comm);
  nccl_status (*destroy)(nccl_comm comm);
  nccl_status (*abort)(nccl_comm comm);
  nccl_status (*mem_alloc)(void** at, size_t bytes);
  nccl_status (*mem_free)(void* at);
  nccl_status (*window_register)(nccl_comm comm, void* at, size_t bytes, nccl_window* made,
                                 int flags);
  nccl_status (*window_deregister)(nccl_comm comm, nccl_window window);
  nccl_status (*group_start)();
  nccl_status (*group_end)();
  nccl_status (*all_reduce)(const void* from, void* to, size_t count, nccl_type type,
                            nccl_reduction what, nccl_comm comm, void* stream);
  nccl_status (*all_gather)(const void* from, void* to, size_t count_each, nccl_type type,
                            nccl_comm comm, void* stream);
  nccl_status (*reduce_scatter)(const void* from, void* to, size_t count_each, nccl_type type,
                                nccl_reduction what, nccl_comm comm, void* stream);
  nccl_status (*broadcast)(const void* from, void* to, size_t count, nccl_type type, int root,
                           nccl_comm comm, void* stream);
  nccl_status (*send)(const void* from, size_t count, nccl_type type, int peer, nccl_comm comm,
                      void* stream);
  nccl_status (*recv)(void* to, size_t count, nccl_type type, int peer, nccl_comm comm,
                      void* stream);
};

/// Loads NCCL into this process, where it stays: its threads outlive every communicator. After
/// close_nccl_environment(), which it reads as it starts.
result<nccl_functions> load_nccl(const std::string& path = "libnccl.so.2");

/// From 2.28.0 on, where all of the table and of nccl_setup is known; not another major version.
result<void> check_nccl_version(int version);

/// What a rank does with NCCL, as errors name it.
enum class nccl_call : uint8_t {
  get_unique_id,
  init,
  split,
  mem_alloc,
  mem_free,
  window_register,
  window_deregister,
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  send,
  recv,
  wipe,
  work,
  finalize,
  destroy,
  abort,
};

std::string_view name_of(nccl_call call);
/// A status that is a failure, and where to look. Of any number, as it may come from another rank.
std::string_view nccl_words(uint32_t status);

}  // namespace lethe
