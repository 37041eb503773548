#pragma once

namespace lethe {
namespace {

/// Where attention's intermediate floats lie in its scratch. A query is one head of one token,
/// tokens outermost, and there is room for whole tiles of 16; rows along the head dimension are
/// padded to whole vectors.
struct attention_layout {
  size_t padded_dim;  // floats in a row of values, of a query, of a sum
  size_t keys;        // [head_dim][attention_tile]; int8: bytes, in groups of four
  size_t values;      // [attention_tile][padded_dim]; int8: bytes, four values side by side
  size_t queries;     // [query][padded_dim], scaled; for int8 keys bytes, rounded
  size_t scores;      // [query][attention_tile]; then their weights
  size_t sums;        // [query][padded_dim]: weighted values of the span so far
  size_t maxima;      // [query]: its greatest score
  size_t totals;      // [query]: its weights
  // For int8 keys and values, [query] and [attention_tile]; weight_scales: what sums of a tile's
  // weights, as integers, are to be multiplied with.
  size_t query_scales, query_corrections, key_scales, value_scales;
  size_t weight_scales;
  size_t joined_sums, joined_maxima, joined_totals;  // of the spans before
  size_t floats;
};

inline attention_layout layout_of(uint32_t tokens, uint32_t heads, uint32_t head_dim) {
  size_t n = size_t{tokens} * heads, tile = attention_tile;
  size_t padded_n = (n + 15) / 16 * 16;
  attention_layout l{};
  l.padded_dim = (size_t{head_dim} + 15) / 16 * 16;
  l.values = l.keys + l.padded_dim * tile;
  l.queries = l.values + l.padded_dim * tile;
  l.scores = l.queries + l.padded_dim * padded_n;
  l.sums = l.scores + padded_n * tile;
  l.maxima = l.sums + l.padded_dim * padded_n;
  l.totals = l.maxima + padded_n;
  l.query_scales = l.totals + padded_n;
  l.query_corrections = l.query_scales + padded_n;
  l.key_scales = l.query_corrections + padded_n;
  l.value_scales = l.key_scales + tile;
  l.weight_scales = l.value_scales + tile;
  l.joined_sums = l.weight_scales + padded_n;
  l.joined_maxima = l.joined_sums + l.padded_dim * padded_n;
  l.joined_totals = l.joined_maxima + padded_n;
  l.floats = l.joined_totals + padded_n;
  return l;
}

}  // namespace
}  // namespace lethe
