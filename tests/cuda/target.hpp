#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_row.hpp"

namespace lethe {

/// Where checks run a table of kernels, and that place's memory.
struct target {
  const cuda_row* row;
  device_stream stream;
  void* (*take)(size_t bytes);
  void (*give)(void* p, size_t bytes);
  void (*copy_in)(void* to, const void* from, size_t bytes);
  void (*copy_out)(void* to, const void* from, size_t bytes);  // after all that is queued
};

/// Memory of a target, of just the size asked for.
template <class T>
class room {
 public:
  room(const target& t, const std::vector<T>& values)
      : target_(t), count_(values.size()), at_(static_cast<T*>(t.take(bytes()))) {
    t.copy_in(at_, values.data(), bytes());
  }
  room(const room&) = delete;
  ~room() { target_.give(at_, bytes()); }

  T* data() { return at_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    target_.copy_out(values.data(), at_, bytes());
    return values;
  }

 private:
  size_t bytes() const { return count_ * sizeof(T); }
  const target& target_;
  size_t count_;
  T* at_;
};

/// A kernel against the reference row over a list of cases: says where they first differ, nothing
/// if they don't.
struct check {
  std::string name;
  std::function<std::string(const target&)> run;
};
std::vector<check> row_checks();
std::vector<check> matmul_checks();
std::vector<check> attention_checks();
std::vector<check> draw_checks();

std::vector<check> draw_checks();

std::vector<check> tensor_matmul_checks();
std::vector<check> tensor_attention_checks();

/// A kind of checks of some type.
template <class Type>
using check_of = std::pair<const char*, std::string (*)(const target&, Type)>;
/// All kinds of one type, named FAMILY_KIND_TYPE.
template <class Type, size_t N>
void add_checks(std::vector<check>& all, const std::string& family, Type type, const char* name,
                const check_of<Type> (&kinds)[N]) {
  for (auto [kind, f] : kinds)
    all.push_back({family + kind + "_" + name, [type, f](const target& t) { return f(t, type); }});
}

inline std::vector<check> joined(std::vector<check> all, const std::vector<check>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
/// Of the exact table.
inline std::vector<check> all_checks() {
  return joined(joined(row_checks(), matmul_checks()), joined(attention_checks(), draw_checks()));
}
/// Of the table of arithmetic by tensor cores, what it does otherwise.
inline std::vector<check> tensor_checks() {
  return joined(tensor_matmul_checks(), tensor_attention_checks());
}

template <class T>
bool same_bits_of(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace lethe
