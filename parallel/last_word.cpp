#include "parallel/last_word.hpp"

#include <fmt/format.h>

#include "parallel/nccl_library.hpp"

namespace lethe {

last_word last_word::unpack(uint64_t from) {
  auto why = ending(from >> 56);
  bool known = why > ending::none && why <= ending::nccl_late;
  return {.why = known ? why : ending::aborted,
          .whose = uint32_t(from >> 32) & 0xffff,
          .number = uint32_t(from),
          .during = uint8_t(from >> 48)};
}

std::string last_word::text() const {
  switch (why) {
    case ending::late:
      return fmt::format("rank {} did not answer within {} ms; see whether it runs and is reached",
                         whose, number);
    case ending::closed:
      return fmt::format("rank {} is gone, its connection was closed; see why it ended", whose);
    case ending::changed:
      return fmt::format("a frame of rank {} was changed on its way; see who is on the link",
                         whose);
    case ending::out_of_order:
      return fmt::format("a frame of rank {} was lost, repeated or moved; see who is on the link",
                         whose);
    case ending::differing:
      return "ranks differ in what they call, or in lengths; the group is aborted";
    case ending::nccl_failed:
      return fmt::format("NCCL failed on rank {} in {}: {}", whose, name_of(nccl_call(during)),
                         nccl_words(number));
    case ending::nccl_late:
      return fmt::format(
          "NCCL did not end {} on rank {} within {} ms; see whether every rank's process and GPU "
          "run",
          name_of(nccl_call(during)), whose, number);
    case ending::none:
    case ending::aborted:
      break;
  }
  return fmt::format("rank {} aborted the group", whose);
}

void group_fate::set(last_word word) {
  std::lock_guard lock(mutex_);
  if (first_.why == ending::none) first_ = word;
}

last_word group_fate::get() const {
  std::lock_guard lock(mutex_);
  return first_;
}

}  // namespace lethe
