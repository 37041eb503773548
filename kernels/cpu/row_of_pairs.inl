// A row whose products of bf16 go by pairs, made of one whose don't.

#include "kernels/cpu/matmul_pairs.inl"
//
#include "kernels/cpu/attend_pairs.inl"

namespace lethe {
namespace {

template <weight_ways ways>
consteval cpu_row row_of_pairs(const char* name, cpu_row row) {
  row.name = name;
  row.matmul = matmul_pairs<ways>;
  row.round = round_in_rows;
  row.attend = attend<attend_int8, attend_pairs>;
  row.join_spans = join_spans_of_pairs;
  return row;
}

}  // namespace
}  // namespace lethe
