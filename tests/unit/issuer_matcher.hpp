#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "tests/unit/issuer_market.hpp"

/// Whose token was spent? It is given all that issuer and gateway see and store: keys, bytes,
/// times, orders, sizes, and which claim was for which spend. It scores every account for every
/// spend.
namespace lethe::test {

/// Of one spend; the highest is its guess.
using candidate_scores = std::array<double, accounts>;
using guesses = std::vector<uint32_t>;

inline uint32_t likeliest(const candidate_scores& of) {
  return uint32_t(std::ranges::max_element(of) - of.begin());
}

class matcher {
 public:
  explicit matcher(const all_seen& seen) : seen_(seen) {}

  /// Who bought last before it.
  guesses by_time_before() const {
    return guess([this](const spend_seen& s) { return since_purchase(s.at_s); });
  }
  /// Who bought next after it.
  guesses by_time_after() const {
    return guess([this](const spend_seen& s) { return until_purchase(s.at_s); });
  }
  /// Who bought most under its key until then.
  guesses by_key() const {
    return guess([this](const spend_seen& s) {
      candidate_scores c{};
      for (const auto& p : seen_.purchases)
        if (p.key_id == s.token.key_id && p.at_s <= s.at_s)
          c[p.account] += double(p.requests.size());
      return c;
    });
  }
  /// Who has most left, of what was bought and not yet put down to him.
  guesses by_stock() const {
    candidate_scores guessed{};
    return guess([&, this](const spend_seen& s) {
      candidate_scores c{};
      for (const auto& p : seen_.purchases)
        if (p.at_s <= s.at_s) c[p.account] += double(p.requests.size());
      for (uint32_t a = 0; a < accounts; ++a) c[a] -= guessed[a];
      ++guessed[likeliest(c)];
      return c;
    });
  }
  /// Tokens of a key are spent in the order in which they were signed, change with them.
  guesses by_order() const {
    const guesses before = by_time_before();
    std::map<hash32, std::vector<uint32_t>> sold;
    std::map<hash32, size_t> spent;
    size_t claims = 0;
    for (const auto& p : seen_.purchases) {
      for (; claims < seen_.claims.size() && seen_.claims[claims].at_s < p.at_s; ++claims)
        sold[p.key_id].push_back(whose(seen_.claims[claims].spent, before));
      sold[p.key_id].insert(sold[p.key_id].end(), p.requests.size(), p.account);
    }
    guesses g;
    for (const auto& s : seen_.spends) {
      const auto& of = sold[s.token.key_id];
      const size_t i = spent[s.token.key_id]++;
      g.push_back(of.empty() ? 0 : of[i % of.size()]);
    }
    return g;
  }
  /// A spend of some size, soon after the claim for one of that size, spends its change.
  guesses by_chain() const {
    guesses g = by_time_before();
    std::vector<bool> followed(seen_.claims.size());
    for (size_t i = 0; i < seen_.spends.size(); ++i)
      for (size_t c = seen_.claims.size(); c-- > 0;) {
        const auto& claim = seen_.claims[c];
        auto from = spend_of(claim.spent);
        if (followed[c] || claim.at_s > seen_.spends[i].at_s || !from) continue;
        if (seen_.spends[*from].bucket != seen_.spends[i].bucket) continue;
        followed[c] = true;
        g[i] = g[*from];
        break;
      }
    return g;
  }
  /// Each account has its habits: which sizes were asked for when only its purchase was near.
  guesses by_size() const {
    const guesses before = by_time_before();
    std::map<uint32_t, candidate_scores> habits;
    for (size_t i = 0; i < before.size(); ++i) ++habits[seen_.spends[i].bucket][before[i]];
    return guess([&, this](const spend_seen& s) {
      auto c = since_purchase(s.at_s);
      for (uint32_t a = 0; a < accounts; ++a) c[a] *= 1 + habits[s.bucket][a];
      return c;
    });
  }
  /// The purchase or claim whose bytes are most like the token's.
  guesses by_bytes() const {
    return guess([this](const spend_seen& s) {
      candidate_scores c{};
      const auto token = s.token.to_bytes();
      for (const auto& p : seen_.purchases)
        for (size_t i = 0; i < p.requests.size(); ++i)
          for (bytes_view of : {bytes_view(p.requests[i].blinded), bytes_view(p.signatures[i])})
            for (bytes_view in : {bytes_view(token), bytes_view(s.token.signature)})
              c[p.account] = std::max(c[p.account], double(bits_alike(of, in)));
      return c;
    });
  }
  guesses by_factor() const;

  /// The spends that had a purchase so soon before them, or behind them.
  std::vector<size_t> near_purchases(uint64_t within_s, bool behind) const {
    std::vector<size_t> near;
    for (size_t i = 0; i < seen_.spends.size(); ++i)
      for (const auto& p : seen_.purchases) {
        const auto [first, second] = behind ? std::pair(seen_.spends[i].at_s, p.at_s)
                                            : std::pair(p.at_s, seen_.spends[i].at_s);
        if (first > second || second - first > within_s) continue;
        near.push_back(i);
        break;
      }
    return near;
  }

  /// All of it together: each way gives its guess as much weight as every other.
  guesses together(std::span<const guesses> ways) const {
    guesses g;
    for (size_t i = 0; i < seen_.spends.size(); ++i) {
      candidate_scores c{};
      for (const auto& way : ways) c[way[i]] += 1;
      const auto near = since_purchase(seen_.spends[i].at_s);
      for (uint32_t a = 0; a < accounts; ++a) c[a] += near[a] / 2;  // between equals
      g.push_back(likeliest(c));
    }
    return g;
  }
  std::vector<guesses> all_ways() const {
    std::vector<guesses> ways{by_time_before(), by_time_after(), by_key(),   by_stock(), by_order(),
                              by_chain(),       by_size(),       by_bytes(), by_factor()};
    ways.push_back(together(ways));
    return ways;
  }

 private:
  template <class Score>
  guesses guess(Score score) const {
    guesses g;
    for (const auto& s : seen_.spends) g.push_back(likeliest(score(s)));
    return g;
  }
  candidate_scores since_purchase(uint64_t at_s) const {
    candidate_scores c{};
    for (const auto& p : seen_.purchases)
      if (p.at_s <= at_s) c[p.account] = 1 / (1 + double(at_s - p.at_s));
    return c;
  }
  candidate_scores until_purchase(uint64_t at_s) const {
    candidate_scores c{};
    for (const auto& p : seen_.purchases)
      if (p.at_s > at_s && c[p.account] == 0) c[p.account] = 1 / (1 + double(p.at_s - at_s));
    return c;
  }
  std::optional<size_t> spend_of(const private_token& t) const {
    auto at = std::ranges::find(seen_.spends, t, &spend_seen::token);
    if (at == seen_.spends.end()) return {};
    return size_t(at - seen_.spends.begin());
  }
  uint32_t whose(const private_token& t, const guesses& g) const {
    auto at = spend_of(t);
    return at ? g[*at] : 0;
  }
  static int bits_alike(bytes_view a, bytes_view b) {
    int same = 0;
    for (size_t i = 0; i + 8 <= std::min(a.size(), b.size()); i += 8) {
      uint64_t x, y;
      std::memcpy(&x, a.data() + i, 8);
      std::memcpy(&y, b.data() + i, 8);
      same += 64 - std::popcount(x ^ y);
    }
    return same;
  }

  const all_seen& seen_;
};

/// A blinded number over what was signed of a token, s^e, is the factor that blinded it, if they
/// belong together. One that comes up with several tokens was used several times.
inline guesses matcher::by_factor() const {
  guesses g(seen_.spends.size(), 0);
  std::map<hash32, std::vector<const purchase_seen*>> by_key;
  for (const auto& p : seen_.purchases) by_key[p.key_id].push_back(&p);
  openssl::number_context context = openssl::new_number_context();
  for (const auto& [key_id, purchases] : by_key) {
    auto key = std::ranges::find(seen_.keys, key_id, &token_key::id);
    if (key == seen_.keys.end()) continue;
    const rsa_public& rsa = key->rsa();
    std::vector<openssl::number> blinded;
    std::vector<uint32_t> account;
    for (const auto* p : purchases)
      for (const auto& r : p->requests) {
        blinded.push_back(openssl::number_from(r.blinded));
        account.push_back(p->account);
      }
    std::unordered_map<uint64_t, std::vector<std::pair<uint32_t, uint32_t>>> factors;
    for (uint32_t t = 0; t < seen_.spends.size(); ++t) {
      const auto& token = seen_.spends[t].token;
      if (token.key_id != key_id) continue;
      auto raw = rsa.power(openssl::number_from(token.signature).get(), context.get());
      auto inverse = rsa.inverse(raw.get(), context.get());
      for (uint32_t b = 0; b < blinded.size(); ++b) {
        auto ratio = rsa.product(blinded[b].get(), inverse.get(), context.get());
        std::array<std::byte, token_modulus_bytes> bytes;
        openssl::number_to(ratio.get(), bytes);
        uint64_t last;
        std::memcpy(&last, bytes.data() + bytes.size() - sizeof last, sizeof last);
        factors[last].emplace_back(account[b], t);
      }
    }
    for (const auto& [factor, pairs] : factors)
      for (auto [a, t] : pairs)
        if (pairs.size() > 1) g[t] = a;
  }
  return g;
}

inline size_t right(const guesses& g, std::span<const uint32_t> truth) {
  size_t n = 0;
  for (size_t i = 0; i < truth.size(); ++i) n += g[i] == truth[i];
  return n;
}
inline size_t right(const guesses& g, std::span<const uint32_t> truth, std::span<const size_t> of) {
  return size_t(std::ranges::count_if(of, [&](size_t i) { return g[i] == truth[i]; }));
}

/// Of n guesses that are right with chance p each more than this are right with a chance of at most
/// alpha: the binomial's tail, summed.
inline size_t most_by_chance(size_t n, double p, double alpha) {
  double tail = 0;
  for (size_t k = n; k > 0; --k) {
    tail += std::exp(std::lgamma(double(n) + 1) - std::lgamma(double(k) + 1) -
                     std::lgamma(double(n - k) + 1) + double(k) * std::log(p) +
                     double(n - k) * std::log1p(-p));
    if (tail > alpha) return k;
  }
  return 0;
}

}  // namespace lethe::test
