#include "runtime/model/load_fill.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/check.hpp"
#include "runtime/model/quantize.hpp"

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

/// The file's rows in the model's order.
struct row_source {
  const raw_tensor* from;
  uint32_t head_dim;
  size_t row_bytes;

  row_source(const raw_tensor& t, uint32_t head)
      : from(&t),
        head_dim(head),
        row_bytes(size_t{t.cols} / block_elements(t.type) * block_bytes(t.type)) {}

  const std::byte* row(uint32_t r) const {
    uint32_t at = from->interleaved_rope ? unpermuted_row(r, head_dim) : r;
    return from->data.data() + at * row_bytes;
  }
  static const std::byte* row_of(const void* context, uint32_t r) {
    return static_cast<const row_source*>(context)->row(r);
  }
};

/// One panel's rows, converted.
struct converted_rows {
  uint32_t first;
  size_t row_bytes;
  std::vector<std::byte> bytes;

  static const std::byte* row_of(const void* context, uint32_t r) {
    auto rows = static_cast<const converted_rows*>(context);
    return rows->bytes.data() + (r - rows->first) * rows->row_bytes;
  }
};

void fill_converted(const row_source& from, const placed_tensor& t, const piece& p, std::byte* to) {
  std::vector<float> row(t.cols);
  converted_rows rows{.row_bytes = size_t{t.cols} / block_elements(t.type) * block_bytes(t.type)};
  rows.bytes.resize(panel_rows * rows.row_bytes);
  for (uint32_t i = 0; i < p.panels; ++i) {
    rows.first = (p.first_panel + i) * panel_rows;
    uint32_t end = std::min(t.rows, rows.first + panel_rows);
    for (uint32_t r = rows.first; r < end; ++r) {
      dequantize_row(from.from->type, from.row(r), row.data(), t.cols);
      quantize_row(t.type, row.data(), t.cols,
                   rows.bytes.data() + (r - rows.first) * rows.row_bytes);
    }
    repack_panels(t.type, t.rows, t.cols, p.first_panel + i, 1, converted_rows::row_of, &rows,
                  to + i * panel_bytes(t.type, t.cols));
  }
}

void fill_vector(const raw_tensor& from, uint32_t head_dim, std::byte* to) {
  std::vector<float> read(from.cols);
  dequantize_row(from.type, from.data.data(), read.data(), from.cols);
  auto floats = reinterpret_cast<float*>(to);
  for (uint32_t i = 0; i < from.cols; ++i) {
    floats[i] = read[from.interleaved_rope ? unpermuted_row(i, head_dim) : i];
  }
}

class filling {
 public:
  filling(const checkpoint& from, const load_layout& layout, const needed_bytes& needed,
          uint32_t threads, std::span<std::byte> to)
      : from_(from),
        layout_(layout),
        needed_(needed),
        to_(to),
        pieces_(cut_into_pieces(layout, needed, threads)),
        left_(layout.tensors.size()) {
    for (const piece& p : pieces_) ++left_[p.tensor];
  }

  /// Does one piece that nobody has done; false if there is none.
  bool step() {
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
  uint64_t fill_needed(const piece& p) const {
    uint64_t bytes = needed_.count_within(p.range());
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
    if (t.is_vector) return fill_vector(raw, head_dim, to);
    row_source rows(raw, head_dim);
    if (t.type != raw.type) return fill_converted(rows, t, p, to);
    fill_panels(rows, t, p, to);
  }

  /// In parts that are still in the cache from having been cleared when they are written.
  static void fill_panels(const row_source& rows, const placed_tensor& t, const piece& p,
                          std::byte* to) {
    const uint64_t panel = panel_bytes(t.type, t.cols);
    const auto step = uint32_t(std::max<uint64_t>(1, cached_bytes / panel));
    for (uint32_t i = 0; i < p.panels; i += step) {
      uint32_t panels = std::min(step, p.panels - i);
      make_present({to + i * panel, panels * panel});
      repack_panels(t.type, t.rows, t.cols, p.first_panel + i, panels, row_source::row_of, &rows,
                    to + i * panel);
    }
  }

  const checkpoint& from_;
  const load_layout& layout_;
  const needed_bytes& needed_;
  std::span<std::byte> to_;
  std::vector<piece> pieces_;
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

void fill_weights(const checkpoint& from, const load_layout& layout, const needed_bytes& needed,
                  uint32_t threads, const std::function<void(uint64_t, uint64_t)>& progress,
                  std::span<std::byte> to) {
  check(threads > 0);
  check(layout.tensors.size() == from.tensors().size() && to.size() == layout.bytes);
  filling work(from, layout, needed, threads, to);
  uint64_t reported = 0;
  auto others = start_threads(threads - 1, work);
  while (work.step()) {
    uint64_t done = work.done();
    if (!progress || done - reported < report_bytes / 2) continue;
    progress(done, needed.total());
    reported = done;
  }
  others.clear();  // joins
  if (progress) progress(needed.total(), needed.total());
}

}  // namespace lethe
