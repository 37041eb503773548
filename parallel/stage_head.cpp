#include <cstring>

#include "parallel/stage.hpp"

namespace lethe {

/// Logits of the rows that are left. Each rank multiplies its part of the vocabulary; rank 0 puts
/// its own straight where the step wants them and collects the others'.
bool stage::head(walk& w) {
  norm(w, weights_.norm, forms_for({&weights_.head}));
  uint32_t vocab = shape_.vocab;
  bool collects = part_.tensor_rank == 0;
  product p[] = {{&weights_.head,
                  part_.vocab,
                  {0, segments},
                  nullptr,
                  collects ? data_->logits : b_.logits,
                  collects ? vocab : part_.vocab.size()}};
  multiply(w, p, input(w.rows, b_.normed, shape_.hidden));
  meet(w, times_.head);
  if (part_.tensor_size == 1) return true;
  if (!talk(w, [&] { return carry_logits(w.rows); })) return false;
  if (collects) place_logits(w);
  return true;
}

result<void> stage::carry_logits(uint32_t rows) {
  if (part_.tensor_rank != 0) {
    std::span<const float> mine(b_.logits, size_t{rows} * part_.vocab.size());
    if (auto sent = tensor_.send(std::as_bytes(mine), 0); !sent) return sent;
    return tensor_.flush();
  }
  float* to = b_.logits;
  for (uint32_t rank = 1; rank < part_.tensor_size; ++rank) {
    range theirs = panels_of(shape_.vocab, rank, part_.tensor_size);
    std::span<float> part(to, size_t{rows} * theirs.size());
    if (auto got = tensor_.recv(std::as_writable_bytes(part), rank); !got) return got;
    to += part.size();
  }
  return {};
}

void stage::place_logits(const walk& w) {
  range mine = share(w, w.rows);
  const float* from = b_.logits;
  for (uint32_t rank = 1; rank < part_.tensor_size; ++rank) {
    range theirs = panels_of(shape_.vocab, rank, part_.tensor_size);
    for (size_t r = mine.begin; r < mine.end; ++r)
      std::memcpy(data_->logits + r * shape_.vocab + theirs.begin, from + r * theirs.size(),
                  theirs.size() * sizeof(float));
    from += size_t{w.rows} * theirs.size();
  }
}

}  // namespace lethe
