#include "parallel/device_stage.hpp"

// Where a stage meets other ranks: rows from stage to stage, what tensor ranks make of o and down
// together, and the logits. Calls of NCCL are queued with the kernels, and so become parts of
// graphs; whatever fails ends the world, so nobody looks at what a call returns.

namespace lethe {
namespace {

constexpr element floats = element::f32;

}  // namespace

void device_stage::enter() {
  if (part_.first())
    return note(row_.rows_to_float(weights_.embed, in_.ids, rows_, x_, shape_.hidden, stream_));
  (void)world_->pipeline()->recv(x_, rows_ * room_.hidden, floats, part_.stage - 1, stream_);
}

void device_stage::leave() {
  (void)world_->pipeline()->send(x_, rows_ * room_.hidden, floats, part_.stage + 1, stream_);
}

/// Where this rank's columns of the input of m are to be written, rows back to back: its own
/// buffer, or its place among all ranks' columns.
float* device_stage::room_for(const matrix& m, float* own) const {
  if (parts_.along_k(m)) return own;
  return own_place(floats_of(widest_part(m.cols, 1, part_.tensor_size)));
}

/// x += m times what `own` begins to be, of all ranks.
void device_stage::join(const matrix& m, const float* bias, const float* own) {
  parts_.along_k(m) ? join_sums(m, own) : join_gathered(m);
  if (bias) note(row_.add_bias(bias, b_.joined, m.rows, rows_, m.rows, stream_));
  note(row_.add(b_.joined, x_, floats_of(m.rows), stream_));
}

/// Each rank multiplies its own segments of K and gets the others' sums; all add them in the upper
/// levels of the tree whose leaves are the segments.
void device_stage::join_sums(const matrix& m, const float* own) {
  product_part mine = parts_.spread(m);
  if (!is_float(m.type)) quantize(own, columns_of(m, mine));
  size_t sums = floats_of(m.rows);
  uint32_t ranks = part_.tensor_size;
  multiply(m, mine, nullptr, own, ranks == 1 ? b_.joined : own_place(sums));
  if (ranks == 1) return;
  gather(sums);
  note(row_.add_tree(shared_, sums, ranks, b_.joined, sums, stream_));
}

/// Each rank gets the whole input and multiplies some output rows.
void device_stage::join_gathered(const matrix& m) {
  uint32_t ranks = part_.tensor_size;
  size_t columns = floats_of(widest_part(m.cols, 1, ranks));
  gather(columns);
  note(row_.join_columns({shared_, columns, rows_, m.cols, ranks, 1}, b_.wide, stream_));
  if (!is_float(m.type)) quantize(b_.wide, m.cols);

  size_t outputs = floats_of(widest_part(m.rows, panel_rows, ranks));
  multiply(m, parts_.spread(m), nullptr, b_.wide, own_place(outputs));
  gather(outputs);
  note(row_.join_columns({shared_, outputs, rows_, m.rows, ranks, panel_rows}, b_.joined, stream_));
}

/// NCCL wants as many floats from each rank, so places are as wide as the widest part.
void device_stage::gather(size_t each) {
  (void)world_->tensor()->all_gather(own_place(each), shared_, each, floats, stream_);
}

/// Logits of the rows that are left. Each rank multiplies its part of the vocabulary; rank 0
/// collects the others'.
void device_stage::head() {
  norm(weights_.norm, !is_float(weights_.head.type));
  uint32_t vocab = shape_.vocab, ranks = part_.tensor_size;
  if (ranks == 1) return multiply(weights_.head, parts_.vocab(), nullptr, b_.normed, b_.logits);
  multiply(weights_.head, parts_.vocab(), nullptr, b_.normed, shared_);
  size_t each = floats_of(widest_part(vocab, panel_rows, ranks));
  carry_logits(each);
  if (part_.tensor_rank != 0) return;
  note(row_.join_columns({shared_, each, rows_, vocab, ranks, panel_rows}, b_.logits, stream_));
}

/// Rank r's come to place r.
void device_stage::carry_logits(size_t each) {
  nccl_communicator& tensor = *world_->tensor();
  if (part_.tensor_rank != 0 && part_.vocab.size() != 0)
    (void)tensor.send(shared_, floats_of(part_.vocab.size()), floats, 0, stream_);
  if (part_.tensor_rank != 0) return;
  for (uint32_t rank = 1; rank < part_.tensor_size; ++rank) {
    size_t theirs = floats_of(panels_of(shape_.vocab, rank, part_.tensor_size).size());
    if (theirs != 0) (void)tensor.recv(shared_ + rank * each, theirs, floats, rank, stream_);
  }
}

}  // namespace lethe
