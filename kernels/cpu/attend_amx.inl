#pragma once

#include "kernels/cpu/attend.inl"

// Attention over int8 keys and values in registers of tiles (amx_registers.hpp): the same integers,
// and the same floats from them.

namespace lethe {
namespace {

/// Queries that go together, two tiles of them, and numbers of each that one product takes.
inline constexpr uint32_t attend_amx_queries = 32, attend_amx_numbers = 64;

/// The sums of all queries with a tile's keys, not scaled.
inline void score_in_tiles(const attention_work& w, const int8_keys& keys, tile_registers& tiles) {
  size_t step = w.at.padded_dim, to_step = attention_tile * sizeof(int32_t);
  for (uint32_t q = 0; q < w.queries; q += attend_amx_queries) {
    const int8_t* queries = int8_queries(w) + q * step;
    int32_t* to = int_scores(w) + size_t{q} * attention_tile;
    for (uint32_t v = 0; v < attention_tile / 16; v += 2, to += 32) {
      tiles.clear<4>(), tiles.clear<5>(), tiles.clear<6>(), tiles.clear<7>();
      for (uint32_t d = 0; d < w.part.kv.head_dim; d += attend_amx_numbers) {
        size_t key = d / 4 * keys.step;
        tiles.load<0>(queries + d, step);
        tiles.load<2>(keys.at[v] + key, keys.step);
        tiles.multiply<4, 0, 2>();
        tiles.load<3>(keys.at[v + 1] + key, keys.step);
        tiles.multiply<5, 0, 3>();
        tiles.load<1>(queries + 16 * step + d, step);
        tiles.multiply<6, 1, 2>();
        tiles.multiply<7, 1, 3>();
      }
      tiles.store<4>(to, to_step);
      tiles.store<5>(to + 16, to_step);
      tiles.store<6>(to + 16 * attention_tile, to_step);
      tiles.store<7>(to + 16 * attention_tile + 16, to_step);
    }
  }
}

/// Sums of products of the high and the low bytes of weights with all values of a tile.
struct tile_values {
  int32_t *high, *low;  // [query][padded_dim]
};

/// Of 16 queries. High bytes of weights have seven bits, low ones have all eight and no sign.
inline void multiply_values(const weighted_values& w, const int8_values& values,
                            const tile_values& to, tile_registers& tiles) {
  size_t step = w.sum_stride * 4;
  tiles.load<0>(w.weights, weights_step);
  tiles.load<1>(w.weights + attention_tile, weights_step);
  for (uint32_t column = 0; column < w.sum_stride; column += 32) {
    tiles.load<2>(values.at[0] + column * 4, step);
    tiles.load<3>(values.at[0] + column * 4 + 64, step);
    tiles.clear<4>(), tiles.clear<5>(), tiles.clear<6>(), tiles.clear<7>();
    tiles.multiply<4, 0, 2>();
    tiles.multiply<5, 0, 3>();
    tiles.multiply_unsigned<6, 1, 2>();
    tiles.multiply_unsigned<7, 1, 3>();
    tiles.store<4>(to.high + column, step);
    tiles.store<5>(to.high + column + 16, step);
    tiles.store<6>(to.low + column, step);
    tiles.store<7>(to.low + column + 16, step);
  }
}

/// To queries that see none of the tile's keys, nothing.
inline void add_tile_values(const weighted_values& w, const tile_values& from) {
  for (uint32_t r = 0; r < attend_amx_queries; r++) {
    if (w.scales[r] == 0.0f) continue;
    lanes scale = set1(w.scales[r]);
    for (size_t i = r * w.sum_stride; i < (r + 1) * w.sum_stride; i += 16) {
      value_sums sums{int_load(from.high + i), int_load(from.low + i)};
      store(w.sums + i, fma(sums.all(), scale, load(w.sums + i)));
    }
  }
}

inline void add_values_in_tiles(const weighted_values& all, uint32_t queries,
                                const int8_values& values, const tile_values& room,
                                tile_registers& tiles) {
  for (uint32_t q = 0; q < queries; q += attend_amx_queries) {
    for (uint32_t half : {0u, 16u}) {
      size_t at = half * all.sum_stride;
      multiply_values(all.of_row(q + half), values, {room.high + at, room.low + at}, tiles);
    }
    add_tile_values(all.of_row(q), room);
  }
}

/// Values of a tile as one piece: rows of a register lie equally far apart, and those in several
/// pages don't.
inline int8_values join_values(const tile_places<int8_numbers>& places, int8_t* to,
                               size_t padded_dim) {
  int8_values values{};
  for (uint32_t v = 0; v < attention_tile / 16; v++, to += 16 * padded_dim) {
    __builtin_memcpy(to, places.at[v].value, 16 * padded_dim);
    values.at[v] = to;
  }
  return values;
}

/// Queries that fill tiles, as whole blocks of a prompt do; others as without tiles.
void attend_int8_amx(const attention_work& w) {
  const kv_view& kv = w.part.kv;
  if (w.queries % attend_amx_queries != 0 || kv.head_dim % attend_amx_numbers != 0 ||
      !has_whole_vectors(kv)) {
    return attend_int8(w);
  }
  tile_registers tiles(16, attend_amx_numbers);
  static_assert(2 * attend_amx_queries <= attention_tile);
  // Where keys and values are copied to, else.
  int32_t* room = reinterpret_cast<int32_t*>(w.in(w.at.keys));
  tile_values products{room, room + attend_amx_queries * w.at.padded_dim};
  int8_t* copy = reinterpret_cast<int8_t*>(w.in(w.at.values));
  tile_span t = first_tile(w.keys);
  tile_turns<int8_numbers> turns(w, t);
  while (t.first < t.last) {
    tile_span next = tile_after(w.keys, t);
    coming_evenly& coming = turns.coming(next, w.queries);
    load_scales(t, turns.here(), w.in(w.at.key_scales), w.in(w.at.value_scales));
    int8_keys keys = keys_in_pages(kv, turns.here());
    int8_values values = join_values(turns.here(), copy, w.at.padded_dim);
    score_in_tiles(w, keys, tiles);
    weigh_all<int8_numbers>(w, t, [&] { coming.ask(1); });
    add_values_in_tiles(weighted_of(w), w.queries, values, products, tiles);
    end_tile(w, next);
    t = next;
    turns.turn();
  }
}

}  // namespace
}  // namespace lethe
