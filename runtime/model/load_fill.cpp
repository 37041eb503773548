#include "runtime/model/load_fill.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/check.hpp"
#include "runtime/model/load_memory.hpp"
#include "runtime/model/load_part.hpp"

namespace lethe {
namespace {

/// What the calling thread reports at least that often, whoever did the work.
constexpr uint64_t report_bytes = uint64_t{32} << 20;
/// Of a core's own cache, beside what it reads meanwhile.
constexpr uint64_t cached_bytes = uint64_t{512} << 10;

/// Memory that is about to be written whole, without a fault for each of its pages. It only saves
/// time: a kernel that can't do so gives the pages one by one.
void make_present(std::span<std::byte> all) {
  constexpr uintptr_t page = 4096;
  auto begin = reinterpret_cast<uintptr_t>(all.data()) & ~(page - 1);
  auto end = (reinterpret_cast<uintptr_t>(all.data()) + all.size()) & ~(page - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

/// Makes huge pages of what is needed whole, one when its first part is about to be written. Shared
/// memory has none unless an administrator says so for all; asked for one by one they are had.
class huge_pages {
 public:
  huge_pages(const needed_bytes& needed, std::span<std::byte> all)
      : needed_(needed), all_(all), asked_(all.size() / huge_page) {}

  void make_for(byte_range r) {
    const uint64_t end = std::min<uint64_t>((r.end + huge_page - 1) / huge_page, asked_.size());
    for (uint64_t i = r.begin / huge_page; i < end && !none_left_; ++i)
      if (!asked_[i].exchange(true)) make(i * huge_page);
  }

 private:
  void make(uint64_t at) {
    // Between tensors are gaps that nobody needs.
    constexpr uint64_t gaps = 4096;
    if (needed_.count_within({at, at + huge_page}) + gaps < huge_page) return;
    make_present(all_.subspan(at, gaps));  // of nothing the kernel makes nothing
    if (madvise(all_.data() + at, huge_page, madvise_collapse) != 0 && errno != EAGAIN)
      none_left_ = true;
  }

  const needed_bytes& needed_;
  std::span<std::byte> all_;
  std::vector<std::atomic<bool>> asked_;
  std::atomic<bool> none_left_{false};  // or the kernel can't
};

/// Some panels of a matrix, or a whole vector.
struct piece {
  uint32_t tensor, first_panel, panels;
  uint64_t offset, bytes;  // in the layout
  byte_range range() const { return {offset, offset + bytes}; }
};

std::vector<piece> cut_into_pieces(const load_layout& layout, const needed_bytes& needed,
                                   uint32_t threads) {
  // While the calling thread does one piece, the others finish about one each.
  uint64_t piece_bytes = report_bytes / 4 / threads;
  std::vector<piece> pieces;
  for (uint32_t i = 0; i < layout.tensors.size(); ++i) {
    const placed_tensor& t = layout.tensors[i];
    if (t.is_vector) {
      pieces.push_back({i, 0, 0, t.offset, t.bytes});
      continue;
    }
    uint64_t panel = panel_bytes(t.type, t.cols);
    auto panels = uint32_t(t.bytes / panel);
    auto step = uint32_t(std::clamp<uint64_t>(piece_bytes / panel, 1, panels));
    for (uint32_t p = 0; p < panels; p += step) {
      uint32_t n = std::min(step, panels - p);
      pieces.push_back({i, p, n, t.offset + p * panel, n * panel});
    }
  }
  std::erase_if(pieces, [&](const piece& p) { return needed.count_within(p.range()) == 0; });
  return pieces;
}

class filling {
 public:
  filling(const checkpoint& from, const load_layout& layout, const needed_bytes& needed,
          const load_options& how, std::span<std::byte> to)
      : from_(from),
        layout_(layout),
        needed_(needed),
        to_(to),
        huge_(needed, to),
        pieces_(cut_into_pieces(layout, needed, how.threads)),
        stop_(how.stop),
        left_(layout.tensors.size()) {
    for (const piece& p : pieces_) ++left_[p.tensor];
  }

  /// Does one piece that nobody has done; false if there is none, or it is to stop.
  bool step() {
    if (stop_.stop_requested()) return false;
    size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= pieces_.size()) return false;
    const piece& p = pieces_[i];
    done_.fetch_add(fill_needed(p), std::memory_order_relaxed);
    if (left_[p.tensor].fetch_sub(1) == 1) from_.release(from_.tensors()[p.tensor]);
    return true;
  }

  uint64_t done() const { return done_.load(std::memory_order_relaxed); }

 private:
  /// Memory that nothing is written to is none.
  uint64_t fill_needed(const piece& p) {
    uint64_t bytes = needed_.count_within(p.range());
    huge_.make_for(p.range());
    if (bytes == p.bytes) return fill(p, to_.data() + p.offset), bytes;
    std::vector<std::byte> whole(p.bytes);
    fill(p, whole.data());
    needed_.within(p.range(), [&](byte_range part) {
      std::copy_n(whole.data() + (part.begin - p.offset), part.end - part.begin,
                  to_.data() + part.begin);
    });
    return bytes;
  }

  void fill(const piece& p, std::byte* to) const {
    const raw_tensor& raw = from_.tensors()[p.tensor];
    const placed_tensor& t = layout_.tensors[p.tensor];
    uint32_t head_dim = from_.shape().head_dim;
    if (t.is_vector) return load_floats(raw, head_dim, 0, raw.cols, to);
    fill_panels(raw, t, head_dim, p, to);
  }

  /// In parts that are still in the cache from having been cleared when they are written.
  static void fill_panels(const raw_tensor& raw, const placed_tensor& t, uint32_t head_dim,
                          const piece& p, std::byte* to) {
    const uint64_t panel = panel_bytes(t.type, t.cols);
    const auto step = uint32_t(std::max<uint64_t>(1, cached_bytes / panel));
    for (uint32_t i = 0; i < p.panels; i += step) {
      uint32_t panels = std::min(step, p.panels - i), first = p.first_panel + i;
      make_present({to + i * panel, panels * panel});
      load_panels(raw, t, head_dim, {first, first + panels, 0, t.cols}, to + i * panel);
    }
  }

  const checkpoint& from_;
  const load_layout& layout_;
  const needed_bytes& needed_;
  std::span<std::byte> to_;
  huge_pages huge_;
  std::vector<piece> pieces_;
  const std::stop_token stop_;
  std::vector<std::atomic<uint32_t>> left_;  // pieces of each tensor
  std::atomic<size_t> next_{0};
  std::atomic<uint64_t> done_{0};
};

/// As many as the host lets us have.
std::vector<std::jthread> start_threads(uint32_t count, filling& work) {
  std::vector<std::jthread> started;
  try {
    while (started.size() < count) {
      started.emplace_back([&work] {
        while (work.step()) {
        }
      });
    }
  } catch (const std::system_error&) {
  }
  return started;
}

}  // namespace

bool fill_weights(const checkpoint& from, const load_layout& layout, const needed_bytes& needed,
                  const load_options& how, std::span<std::byte> to) {
  check(how.threads > 0);
  check(layout.tensors.size() == from.tensors().size() && to.size() == layout.bytes);
  filling work(from, layout, needed, how, to);
  uint64_t reported = 0;
  auto others = start_threads(how.threads - 1, work);
  while (work.step()) {
    uint64_t done = work.done();
    if (!how.progress || done - reported < report_bytes / 2) continue;
    how.progress(done, needed.total());
    reported = done;
  }
  others.clear();  // joins
  if (how.stop.stop_requested()) return false;
  if (how.progress) how.progress(needed.total(), needed.total());
  return true;
}

}  // namespace lethe
