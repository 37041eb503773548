#include "tests/cuda/nccl_over_sockets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string_view>

#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/socket_exchange.hpp"

namespace lethe {

/// What a rank holds of a group until it destroys or aborts it.
struct nccl_comm_object {
  std::shared_ptr<emulated::socket_group> group;
};

namespace emulated {
namespace {

using status = nccl_status;

constexpr std::string_view folders = "/tmp/lethe_nccl_";

/// Of this thread, between group_start and group_end.
struct open_group {
  struct call {
    device_stream on;
    nccl_work work;
  };
  int depth = 0;
  status said = status::success;
  std::vector<call> calls;
};
thread_local open_group grouped;

status get_version(int* version) { return *version = 22809, status::success; }

/// A folder that is not there yet.
status get_unique_id(nccl_id* id) {
  std::random_device any;
  std::string name = fmt::format("{}{:08x}{:08x}{:08x}{:08x}", folders, any(), any(), any(), any());
  *id = {};
  name.copy(id->bytes, sizeof id->bytes - 1);
  return status::success;
}

bool good(const nccl_setup* s) {
  return s != nullptr && s->size == sizeof *s && s->magic == 0xcafebeef && s->blocking == 0;
}

status init(nccl_comm* made, int size, nccl_id id, int rank, nccl_setup* setup) {
  std::string_view folder(id.bytes, sizeof id.bytes);
  folder = folder.substr(0, folder.find('\0'));
  bool known = folder.starts_with(folders) && folder.size() == folders.size() + 32;
  if (!known || rank < 0 || rank >= size || !good(setup)) return status::invalid_argument;
  auto group = std::make_shared<socket_group>(std::string(folder), rank, size);
  *made = new nccl_comm_object{group};
  return group->look();
}

status split(nccl_comm parent, int color, int key, nccl_comm* made, nccl_setup* setup) {
  if (color < 0 || !good(setup)) return status::invalid_argument;
  *made = nullptr;
  return parent->group->split(color, key, [made](std::shared_ptr<socket_group> group) {
    *made = new nccl_comm_object{std::move(group)};
  });
}

status async_error(nccl_comm c, status* state) {
  *state = c->group->look();
  return status::success;
}

status finalize(nccl_comm c) { return c->group->finalize(); }

status abort(nccl_comm c) {
  c->group->end();
  delete c;
  return status::success;
}

status destroy(nccl_comm c) { return c->group->finalized() ? abort(c) : status::invalid_usage; }

status mem_alloc(void** at, size_t bytes) {
  size_t whole = (bytes + nccl_window_alignment - 1) / nccl_window_alignment;
  *at = std::aligned_alloc(nccl_window_alignment, whole * nccl_window_alignment);
  if (*at == nullptr) return status::unhandled_cuda_error;
  std::fill_n(static_cast<std::byte*>(*at), bytes, std::byte{0xff});  // NaN, as a device's
  return status::success;
}

status mem_free(void* at) { return std::free(at), status::success; }

status window_register(nccl_comm c, void*, size_t, nccl_window* made, int) {
  *made = nullptr;
  return c->group->state();
}

status window_deregister(nccl_comm, nccl_window) { return status::invalid_argument; }

void queue(device_stream on, std::vector<nccl_work> works) {
  auto exchange = std::make_shared<socket_exchange>(std::move(works));
  queue_on(on, [exchange] { return exchange->go_on(); });
}

status group_start() { return ++grouped.depth, status::success; }

/// What is on one stream is one operation of it.
status group_end() {
  if (grouped.depth == 0) return status::invalid_usage;
  if (--grouped.depth != 0) return status::success;
  auto [depth, said, calls] = std::exchange(grouped, {});
  if (said != status::success) return said;
  while (!calls.empty()) {
    device_stream on = calls.front().on;
    std::vector<nccl_work> works;
    for (auto& c : calls)
      if (c.on == on) works.push_back(std::move(c.work));
    std::erase_if(calls, [on](const auto& c) { return c.on == on; });
    queue(on, std::move(works));
  }
  return status::success;
}

status unfit(const nccl_work& w, void* stream) {
  bool message = w.what == nccl_call::send || w.what == nccl_call::recv;
  bool there =
      w.other >= 0 && w.other < w.group->size() && !(message && w.other == w.group->rank());
  bool known = w.type == nccl_type::float32 || w.type == nccl_type::bfloat16;
  if (!there || !known || stream == nullptr) return status::invalid_argument;
  if (w.group->finalized()) return status::invalid_usage;
  status said = w.group->look();
  return said == status::in_progress ? status::invalid_usage : said;
}

status enqueue(nccl_work w, void* stream) {
  if (status said = unfit(w, stream); said != status::success) {
    if (grouped.depth != 0) grouped.said = said;
    return said;
  }
  auto on = static_cast<device_stream>(stream);
  if (grouped.depth != 0)
    grouped.calls.push_back({on, std::move(w)});
  else
    queue(on, {std::move(w)});
  return status::success;
}

status all_reduce(const void* from, void* to, size_t count, nccl_type type, nccl_reduction what,
                  nccl_comm c, void* s) {
  if (what != nccl_reduction::sum) return status::invalid_argument;
  return enqueue({nccl_call::all_reduce, c->group, from, to, count, type}, s);
}

status all_gather(const void* from, void* to, size_t count, nccl_type type, nccl_comm c, void* s) {
  return enqueue({nccl_call::all_gather, c->group, from, to, count, type}, s);
}

status reduce_scatter(const void* from, void* to, size_t count, nccl_type type, nccl_reduction what,
                      nccl_comm c, void* s) {
  if (what != nccl_reduction::sum) return status::invalid_argument;
  return enqueue({nccl_call::reduce_scatter, c->group, from, to, count, type}, s);
}

status broadcast(const void* from, void* to, size_t count, nccl_type type, int root, nccl_comm c,
                 void* s) {
  return enqueue({nccl_call::broadcast, c->group, from, to, count, type, root}, s);
}

status send(const void* from, size_t count, nccl_type type, int peer, nccl_comm c, void* s) {
  return enqueue({nccl_call::send, c->group, from, nullptr, count, type, peer}, s);
}

status recv(void* to, size_t count, nccl_type type, int peer, nccl_comm c, void* s) {
  return enqueue({nccl_call::recv, c->group, nullptr, to, count, type, peer}, s);
}

}  // namespace

const nccl_functions& nccl_over_sockets() {
  static const nccl_functions all{
      get_version,     get_unique_id,     init,        split,     async_error,
      finalize,        destroy,           abort,       mem_alloc, mem_free,
      window_register, window_deregister, group_start, group_end, all_reduce,
      all_gather,      reduce_scatter,    broadcast,   send,      recv};
  return all;
}

}  // namespace emulated
}  // namespace lethe
