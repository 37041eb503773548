#pragma once

#include <fmt/format.h>

#include <ctime>
#include <memory_resource>
#include <string>
#include <string_view>

#include "runtime/template/bounds.hpp"
#include "runtime/template/object.hpp"
#include "runtime/template/value.hpp"

namespace lethe::jinja {

class rendering;

/// Text that grows within the rendering's bounds; its view lives as long as the rendering.
class text_sink {
 public:
  explicit text_sink(rendering& r) : r_(r) {}
  void append(std::string_view text);
  void append(char c) { append(std::string_view(&c, 1)); }
  void append(size_t count, char c);
  std::string_view view() const { return {data_, size_}; }

 private:
  char* grow(size_t bytes);
  rendering& r_;
  char* data_ = nullptr;
  size_t size_ = 0, room_ = 0;
};

/// One rendering's memory, bounds and outcome. After the first failure every part of the
/// evaluator gives back nothing in particular and unwinds; loops look at `ok`.
class rendering {
 public:
  rendering(const program& p, std::pmr::memory_resource* upstream, std::time_t now);

  bool ok() const { return why_.empty(); }
  const std::string& why() const { return why_; }
  void at(uint32_t line) { line_ = line; }
  uint32_t line() const { return line_; }
  /// Keeps the first reason. It must not hold content of the messages.
  /// Out of line: its temporaries would lie in every frame of a deep walk.
  template <class... Args>
  [[gnu::noinline, gnu::cold]] value fail(fmt::format_string<Args...> format, Args&&... args) {
    if (ok()) refuse(fmt::format(format, std::forward<Args>(args)...));
    return {};
  }

  /// Counts work: one step, and more where bytes are moved. False: stop.
  bool step(size_t bytes = 0);
  /// Counts memory before it is allocated.
  bool take(size_t bytes);
  std::pmr::memory_resource* memory() { return &pool_; }
  template <class T, class... Args>
  T* make(Args&&... args) {
    take(sizeof(T));
    return std::pmr::polymorphic_allocator<>(&pool_).new_object<T>(std::forward<Args>(args)...);
  }

  value list_of(sequence* s) const { return value(kind::list, s); }
  sequence* make_sequence() { return make<sequence>(&pool_); }
  dictionary* make_dictionary() { return make<dictionary>(&pool_); }
  void push(sequence& to, const value& v);
  void put(dictionary& to, const value& key, const value& held);
  std::string_view keep(std::string_view text);
  /// a + b; in place where `a` is the text joined last, so growing a text costs what is added.
  std::string_view join(std::string_view a, std::string_view b);

  scope* open_scope(scope* outer);
  void close_scope(scope* s);

  const program& source;
  const std::time_t now;
  text_sink* out = nullptr;
  value captured;  // the text that a filter block or a block assignment works on
  uint32_t depth = 0;

 private:
  void refuse(std::string why);

  std::pmr::monotonic_buffer_resource pool_;
  std::pmr::vector<scope*> spare_{&pool_};
  std::string why_;
  uint64_t steps_ = 0;
  size_t bytes_ = 0;
  uint32_t line_ = 0;
  char* tail_ = nullptr;  // behind the text joined last
  size_t tail_room_ = 0;
};

/// One level deeper in a walk that recurses; false where the bound is reached.
class deeper {
 public:
  explicit deeper(rendering& r) : r_(r) {
    if (++r_.depth > limits::template_depth_max) {
      r_.fail("more than {} nested calls, blocks or containers", limits::template_depth_max);
    }
  }
  deeper(const deeper&) = delete;
  ~deeper() { --r_.depth; }
  explicit operator bool() const { return r_.ok(); }

 private:
  rendering& r_;
};

}  // namespace lethe::jinja
