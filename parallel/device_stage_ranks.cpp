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
float* device_stage::columns_for(const matrix& m, float* own) const {
  if (parts_.along_k(m)) return own;
  return own_place(floats_of(widest_part(m.cols, 1, part_.tensor_size)));
}

/// What is to be made of them there: what others get are floats.
device_activations device_stage::input_of(const matrix& m, float* own) const {
  return room_for({parts_.along_k(m) ? m.type : dtype::f32}, own, 0);
}

/// m times what `own` begins to be, of all ranks, and that onto the residual stream, in its other
/// buffer.
void device_stage::join(const matrix& m, const float* bias, const float* own) {
  const device_output to{
      .y = x_ == b_.x[0] ? b_.x[1] : b_.x[0], .stride = m.rows, .bias = bias, .onto = x_};
  parts_.along_k(m) ? join_sums(m, own, to) : join_gathered(m, to);
  x_ = to.y;
}

/// Each rank multiplies its own segments of K and gets the others' sums; all add them in the upper
/// levels of the tree whose leaves are the segments.
void device_stage::join_sums(const matrix& m, const float* own, const device_output& to) {
  device_product mine = product(m, parts_.spread(m), nullptr, nullptr);
  uint32_t ranks = part_.tensor_size;
  size_t sums = floats_of(m.rows);
  if (ranks == 1)
    mine.to = to;
  else
    mine.to.y = own_place(sums);
  multiply({mine}, own);
  if (ranks == 1) return;
  gather(sums);
  note(row_.add_tree(shared_, sums, ranks, to, rows_, m.rows, stream_));
}

/// Each rank gets the whole input and multiplies some output rows.
void device_stage::join_gathered(const matrix& m, const device_output& to) {
  uint32_t ranks = part_.tensor_size;
  size_t columns = floats_of(widest_part(m.cols, 1, ranks));
  gather(columns);
  note(row_.join_columns({shared_, columns, rows_, m.cols, ranks, 1}, {b_.wide, m.cols}, stream_));
  quantize(b_.wide, m.cols, room_for({m.type}, b_.wide, 0));

  size_t outputs = floats_of(widest_part(m.rows, panel_rows, ranks));
  multiply({product(m, parts_.spread(m), nullptr, own_place(outputs))}, b_.wide);
  gather(outputs);
  note(row_.join_columns({shared_, outputs, rows_, m.rows, ranks, panel_rows}, to, stream_));
}

/// NCCL wants as many floats from each rank, so places are as wide as the widest part.
void device_stage::gather(size_t each) {
  (void)world_->tensor()->all_gather(own_place(each), shared_, each, floats, stream_);
}

/// Logits of the rows that are left. Each rank multiplies its part of the vocabulary; rank 0
/// collects the others'.
void device_stage::head() {
  norm(weights_.norm, {weights_.head.type});
  uint32_t vocab = shape_.vocab, ranks = part_.tensor_size;
  multiply({product(weights_.head, parts_.vocab(), nullptr, ranks == 1 ? b_.logits : shared_)},
           b_.normed);
  if (ranks == 1) return;
  size_t each = floats_of(widest_part(vocab, panel_rows, ranks));
  carry_logits(each);
  if (part_.tensor_rank != 0) return;
  note(row_.join_columns({shared_, each, rows_, vocab, ranks, panel_rows}, {b_.logits, vocab},
                         stream_));
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
