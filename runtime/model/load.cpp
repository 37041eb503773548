#include "runtime/model/load.hpp"

#include <fstream>
#include <iterator>

#include "runtime/model/load_fill.hpp"
#include "runtime/model/load_layout.hpp"
#include "runtime/model/load_memory.hpp"

namespace lethe {
namespace {

class sealed_model final : public loaded_model {
 public:
  sealed_model(const model_shape& shape, load_layout layout, sealed_memory memory)
      : layout_(std::move(layout)),
        memory_(std::move(memory)),
        weights_(weights_at(shape, layout_, memory_.bytes().data())) {}

  const model_weights& weights() const override { return weights_; }
  size_t bytes() const override { return memory_.bytes().size(); }
  int memfd() const override { return memory_.fd(); }
  const std::vector<std::string>& unconverted() const override { return layout_.unconverted; }

 private:
  load_layout layout_;
  sealed_memory memory_;
  model_weights weights_;
};

result<void> check_host(uint64_t needed) {
  std::ifstream file("/proc/meminfo");
  std::string meminfo(std::istreambuf_iterator<char>(file), {});
  return check_memory(needed, meminfo);
}

}  // namespace

result<std::unique_ptr<loaded_model>> loaded_model::load(const checkpoint& from,
                                                         const load_options& options) {
  auto layout = plan_layout(from.tensors(), options.quantize);
  if (!layout) return layout.why();
  auto memory = sealed_memory::make(layout->bytes);
  if (!memory) return memory.why();
  auto needed = needed_of(from.shape(), *layout, options.share, memory->bytes().data());
  if (!needed) return needed.why();
  if (auto fits = check_host(needed->total()); !fits) return fits.why();
  if (!fill_weights(from, *layout, *needed, options, memory->writable()))
    return fail("loading was stopped");
  if (auto sealed = memory->seal(); !sealed) return sealed.why();
  return std::unique_ptr<loaded_model>(
      new sealed_model(from.shape(), *std::move(layout), *std::move(memory)));
}

result<std::unique_ptr<loaded_model>> loaded_model::attach(const checkpoint& from,
                                                           const load_options& options, int memfd) {
  auto layout = plan_layout(from.tensors(), options.quantize);
  if (!layout) return layout.why();
  auto memory = sealed_memory::attach(memfd, layout->bytes);
  if (!memory) return memory.why();
  return std::unique_ptr<loaded_model>(
      new sealed_model(from.shape(), *std::move(layout), *std::move(memory)));
}

}  // namespace lethe
