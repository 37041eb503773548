#include "parallel/plan_bytes.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/wipe.hpp"

namespace lethe {
namespace {

/// In front of entries, draws, page tables, copies, wipes and ids, each back to back.
struct head {
  uint64_t bytes;  // of all
  uint64_t id;
  uint32_t version, tokens, logit_rows, wipe_scratch;
  uint32_t entries, draws, pages, copies, wipes, spare;
};
constexpr uint32_t step_version = 2, end_version = 0x656e64;

static_assert(sizeof(plan_entry) == 32 && sizeof(row_draw) == 32 && sizeof(page_copy) == 12 &&
              sizeof(head) == 56);

uint64_t bytes_of(const head& h) {
  return sizeof(head) + uint64_t{h.entries} * sizeof(plan_entry) +
         uint64_t{h.draws} * sizeof(row_draw) + uint64_t{h.copies} * sizeof(page_copy) +
         (uint64_t{h.pages} + h.wipes + h.tokens) * sizeof(uint32_t);
}

template <class T>
std::byte* put(std::byte* to, const T* from, size_t count) {
  if (count != 0) std::memcpy(to, from, count * sizeof(T));
  return to + count * sizeof(T);
}

template <class T>
const std::byte* take(const std::byte* from, std::vector<T>& to, size_t count) {
  to.resize(count);
  if (count != 0) std::memcpy(to.data(), from, count * sizeof(T));
  return from + count * sizeof(T);
}

}  // namespace

result<plan_bytes> plan_bytes::make() {
  auto memory = region::map(bytes_max, "plans");
  if (!memory) return memory.why();
  return plan_bytes(*std::move(memory));
}

result<void> plan_bytes::write(const step_plan& plan, const uint32_t* ids) {
  head h{.id = plan.id,
         .version = step_version,
         .tokens = plan.tokens,
         .logit_rows = plan.logit_rows,
         .wipe_scratch = plan.wipe_scratch,
         .entries = uint32_t(plan.entries.size()),
         .draws = uint32_t(plan.draws.size()),
         .pages = uint32_t(plan.pages.size()),
         .copies = uint32_t(plan.copies.size()),
         .wipes = uint32_t(plan.wipes.size())};
  h.bytes = bytes_of(h);
  if (h.bytes > bytes_max || (ids == nullptr && plan.tokens != 0))
    return fail("step {}: a plan of {} bytes for other processes, {} at most; run fewer sequences",
                plan.id, h.bytes, bytes_max);
  std::byte* at = put(memory_.data(), &h, 1);
  at = put(at, plan.entries.data(), plan.entries.size());
  at = put(at, plan.draws.data(), plan.draws.size());
  at = put(at, plan.pages.data(), plan.pages.size());
  at = put(at, plan.copies.data(), plan.copies.size());
  at = put(at, plan.wipes.data(), plan.wipes.size());
  put(at, ids, plan.tokens);
  return {};
}

void plan_bytes::write_end() {
  const head h{.bytes = sizeof(head), .version = end_version};
  put(memory_.data(), &h, 1);
}

result<std::span<std::byte>> plan_bytes::rest() {
  auto h = load_le<head>(memory_.data());
  if (h.bytes != bytes_of(h) || h.bytes > bytes_max)
    return fail("step: a plan of {} bytes; see that all ranks run the same release", h.bytes);
  size_t more = h.bytes > first_bytes ? h.bytes - first_bytes : 0;
  return std::span(memory_.data() + first_bytes, more);
}

result<bool> plan_bytes::read(step_plan& plan, const uint32_t*& ids) {
  auto h = load_le<head>(memory_.data());
  if (auto told = rest(); !told) return told.why();
  if (h.version == end_version) return false;
  if (h.version != step_version || h.wipe_scratch > 1)
    return fail("step: a plan of version {}; see that all ranks run the same release", h.version);
  plan.id = h.id;
  plan.tokens = h.tokens;
  plan.logit_rows = h.logit_rows;
  plan.wipe_scratch = h.wipe_scratch != 0;
  const std::byte* at = take(memory_.data() + sizeof h, plan.entries, h.entries);
  at = take(at, plan.draws, h.draws);
  at = take(at, plan.pages, h.pages);
  at = take(at, plan.copies, h.copies);
  at = take(at, plan.wipes, h.wipes);
  ids = reinterpret_cast<const uint32_t*>(at);
  return true;
}

void plan_bytes::wipe() {
  uint64_t bytes = load_le<head>(memory_.data()).bytes;
  lethe::wipe(memory_.data(), std::clamp<uint64_t>(bytes, first_bytes, bytes_max));
}

}  // namespace lethe
