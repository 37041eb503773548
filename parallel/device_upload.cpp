#include "parallel/device_upload.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "parallel/team.hpp"

namespace lethe {
namespace {

// A core's share of a piece: small beside its cache, so that none waits long for the others.
constexpr size_t read_bytes = size_t{512} << 10;

/// A stretch of the device's memory, as long as a piece at most, and what is read for it.
struct stretch {
  size_t begin = 0, end = 0;
  std::vector<weight_read> reads;
};

/// Fills `piece` up with reads, and puts zeros between them; their bytes are still to come.
stretch next_stretch(weight_cuts& cuts, size_t begin, size_t all_bytes,
                     std::span<std::byte> piece) {
  stretch s{.begin = begin, .end = begin, .reads = {}};
  for (;;) {
    const size_t at = cuts.done() ? all_bytes : cuts.offset();
    if (at - begin > piece.size()) return s;
    std::memset(piece.data() + (s.end - begin), 0, at - s.end);
    s.end = at;
    if (cuts.done()) return s;
    auto read = cuts.next(std::min(read_bytes, piece.size() - (at - begin)));
    if (!read) return s;
    s.reads.push_back(*read);
    s.end = read->offset + read->bytes;
  }
}

void do_read(const weight_source& from, const weight_read& r, std::byte* to) {
  if (r.from->vector == nullptr) return from.read(r.from->of, r.part, to);
  const size_t bytes = r.part.columns() * sizeof(float);
  from.read(r.from->vector + r.part.column_begin, r.part.columns(), to);
  std::memset(to + bytes, 0, r.bytes - bytes);
}

/// Each thread takes the next read that nobody has.
void read_all(const weight_source& from, const stretch& s, std::byte* piece, team& crew) {
  std::atomic<size_t> next{0};
  crew.run([&](uint32_t) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < s.reads.size();)
      do_read(from, s.reads[i], piece + (s.reads[i].offset - s.begin));
  });
  for (const weight_read& r : s.reads)
    if (r.last && r.from->vector == nullptr) from.release(r.from->of);
}

/// When a piece is filled, the other's copy must end before the next begins: so one wait in a round
/// is for a copy that went on while this thread read.
device_error send_all(accelerator& on, const weight_source& from, weight_cuts& cuts, std::byte* to,
                      size_t bytes, std::byte* pinned, team& crew, const upload_options& how) {
  size_t sent = 0;
  for (uint32_t turn = 0; sent < bytes; turn = (turn + 1) % upload_pieces) {
    std::span piece(pinned + turn * how.piece_bytes, how.piece_bytes);
    stretch s = next_stretch(cuts, sent, bytes, piece);
    check(s.end > s.begin);
    read_all(from, s, piece.data(), crew);
    if (device_error e = on.finish()) return e;
    if (device_error e = on.copy(to + s.begin, piece.data(), s.end - s.begin)) return e;
    sent = s.end;
    if (how.progress) how.progress(sent, bytes);
  }
  return on.finish();
}

}  // namespace

result<void> upload(accelerator& on, const weight_source& from,
                    const std::vector<placed_weight>& all, std::byte* to, size_t bytes,
                    const upload_options& how) {
  check(how.piece_bytes >= weight_cuts::room_least && how.piece_bytes % 256 == 0);
  device_memory pinned(on, memory_kind::pinned, upload_pieces * how.piece_bytes);
  if (pinned.data() == nullptr)
    return fail("shard: no room for {} bytes of pinned memory; lower what others lock",
                upload_pieces * how.piece_bytes);
  auto crew = team::start(std::max(1u, how.threads), false);
  if (!crew) return crew.why();
  weight_cuts cuts(all);
  if (device_error e = send_all(on, from, cuts, to, bytes, pinned.data(), **crew, how))
    return fail("shard: the weights did not reach the device: CUDA error {}", e);
  return {};
}

}  // namespace lethe
