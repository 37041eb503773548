#include <fmt/format.h>

#include <algorithm>

#include "tests/unit/nccl_fake_state.hpp"

// How calls come to a device: at once as a batch of its stream, or, where it is served, as work
// that it does when it comes to it.

namespace lethe::testing {
namespace {

thread_local fake_batch* group_batch = nullptr;
thread_local std::shared_ptr<fake_work> group_work;

fake_batch* put_batch(fake_stream& on, std::vector<std::unique_ptr<fake_batch>>& all,
                      size_t parts) {
  auto* b = all.emplace_back(std::make_unique<fake_batch>(&on, parts)).get();
  on.order.push_back(b);
  ++on.pending;
  return b;
}

void enqueue(std::shared_ptr<fake_work> work) {
  work->on.first.enqueue([work] { return work->run(); });
}

}  // namespace

void fake_streams::hand_over(fake_nccl& fake, fake_nccl::member& m, void* stream,
                             const fake_nccl::member::shape& shape, fake_post post, bool in_group) {
  auto served = fake.served_.find(stream);
  if (served == fake.served_.end()) {
    auto& on = *static_cast<fake_stream*>(stream);
    fake_batch* batch = group_batch;
    batch != nullptr ? void(++batch->left) : void(batch = put_batch(on, fake.batches_, 1));
    if (in_group) group_batch = batch;
    post(batch);
    if (!in_group) fake.progress();
    return;
  }
  bool captured = served->second.first.capturing();
  if (captured && !m.called.contains(shape))
    fake.note(fmt::format("a first {} of rank {} is captured", name_of(nccl_call(shape[0])),
                          m.world_rank));
  if (!captured) m.called.insert(shape);
  if (group_work) return group_work->posts.push_back(std::move(post));
  std::erase_if(m.work, [](const auto& w) { return w.expired(); });
  auto work = std::make_shared<fake_work>(fake, m, served->second, std::vector{std::move(post)});
  m.work.push_back(work);
  in_group ? void(group_work = std::move(work)) : enqueue(std::move(work));
}

bool fake_streams::grouped() { return group_batch != nullptr || group_work != nullptr; }

void fake_streams::end_group() {
  group_batch = nullptr;
  if (group_work) enqueue(std::exchange(group_work, nullptr));
}

/// What was aborted ends as if it were done.
int fake_work::run() {
  std::lock_guard lock(fake.mutex_);
  if (batch == nullptr) {
    if (whose.aborted || whose.gone) return 0;
    batch = put_batch(on.second, fake.batches_, posts.size());
    for (const fake_post& post : posts) post(batch);
    fake.progress();
  }
  if (batch->left != 0) return 600;
  batch = nullptr;
  return 0;
}

}  // namespace lethe::testing
