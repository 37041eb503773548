#include "parallel/device_shard.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "parallel/decode_graphs.hpp"
#include "parallel/device_answers.hpp"
#include "parallel/plan_check.hpp"
#include "runtime/base/wipe.hpp"

namespace lethe {

struct device_shard::parts {
  parts(accelerator& device, const cuda_row& kernels, std::unique_ptr<device_weights> w,
        const device_config& c, nccl_world* others, std::span<std::byte> memory);

  bool has_memory() const;
  void use_memory();
  result<void> make_graphs(const device_config& c);
  result<void> run(const step_plan& plan, const step_data& data);
  result<void> check_tables(const step_plan& plan) const;
  void clean(const step_plan& plan);
  void wipe_page(uint32_t id);
  void wipe_scratch();
  void wipe_staging();
  step_form tell(const step_plan& plan, const step_data& data);
  void tell_runs(const step_plan& plan, bool last, run_counts& counts);
  void tell_angles(const plan_entry& e);
  uint32_t places_for(const step_plan& plan) const;
  size_t told_bytes(const step_plan& plan) const;
  void compute(const step_plan& plan, const step_data& data);
  void draw(const step_plan& plan, const row_draw* draws);
  result<void> answer(const step_plan& plan, const step_data& data);
  result<void> wait(const char* what);
  bool asked();
  bool leave_nothing();
  void note(device_error e) {
    if (error == 0) error = e;
  }

  accelerator& on;
  const cuda_row& row;
  const shard_config config;
  const std::unique_ptr<device_weights> weights;
  const model_shape& shape;
  nccl_world* const world;
  const kv_layout layout;
  const device_room room;
  const std::vector<double> frequencies;
  const double magnitude;
  const device_memory pages, activations, inputs, pinned_inputs;
  device_answers answers;

  const std::span<std::byte> shared;  // the world's

  std::unique_ptr<device_stage> stage;
  decode_graphs graphs;
  device_inputs here{};  // in pinned memory, of the step
  device_buffers buffers{};
  std::vector<uint8_t> touched;  // pages
  std::vector<kept_rows> kept;
  device_error error = 0;
};

namespace {

// How long an end of the world may take to leave the device.
constexpr std::chrono::seconds patience{30};

result<void> failed(const char* what, device_error e) {
  return fail("shard: {} failed on the device: CUDA error {}", what, e);
}

/// Registered, where devices reach each other. Where one rank has no room, all are told.
result<std::span<std::byte>> take_shared(nccl_world* world, size_t bytes) {
  if (bytes == 0) return std::span<std::byte>();
  auto memory = world->allocate(bytes);
  if (!memory) return memory.why();
  return std::span(static_cast<std::byte*>(memory->at), memory->bytes);
}

}  // namespace

device_shard::parts::parts(accelerator& device, const cuda_row& kernels,
                           std::unique_ptr<device_weights> w, const device_config& c,
                           nccl_world* others, std::span<std::byte> memory)
    : on(device),
      row(kernels),
      config(c.shard),
      weights(std::move(w)),
      shape(weights->get().shape),
      world(others),
      layout{config.part.layers.size(), config.part.kv_heads.size(), shape.head_dim,
             config.page_tokens, config.kv},
      room(device_room::of(weights->get(), config, row.arithmetic, c.score_tiles)),
      frequencies(rope_frequencies(shape.rope)),
      magnitude(rope_magnitude(shape.rope)),
      pages(on, memory_kind::device, config.pages * layout.page_bytes()),
      activations(on, memory_kind::device, room.buffers_bytes()),
      inputs(on, memory_kind::device, room.inputs_bytes()),
      pinned_inputs(on, memory_kind::pinned, room.inputs_bytes()),
      answers(on, room),
      shared(memory),
      graphs(on),
      touched(config.pages) {
  kept.reserve(config.step_tokens);
}

bool device_shard::parts::has_memory() const {
  return pages.data() && activations.data() && inputs.data() && pinned_inputs.data() &&
         answers.has_memory();
}

/// Wipes all of it: what an earlier process left there is not ours to compute with.
void device_shard::parts::use_memory() {
  buffers = room.buffers_at(activations.data());
  std::memset(pinned_inputs.data(), 0, pinned_inputs.size());
  stage = std::make_unique<device_stage>(
      device_setting{.on = on,
                     .row = row,
                     .weights = *weights,
                     .room = room,
                     .part = config.part,
                     .inputs = inputs.data(),
                     .b = buffers,
                     .layout = layout,
                     .pool = pages.data(),
                     .world = world,
                     .shared = reinterpret_cast<float*>(shared.data())});
  note(row.wipe(pages.data(), pages.size(), on.stream()));
  wipe_scratch();
}

result<void> device_shard::parts::make_graphs(const device_config& c) {
  if (c.graphs) note(graphs.make(*stage, uint32_t(room.logit_rows), room.tiles, world != nullptr));
  wipe_scratch();  // of what was computed to connect ranks
  return wait("the start");
}

result<std::unique_ptr<device_shard>> device_shard::start(accelerator& on, const cuda_row& row,
                                                          std::unique_ptr<device_weights> weights,
                                                          const device_config& with,
                                                          nccl_world* world,
                                                          std::span<std::byte> shared) {
  const shard_config& config = with.shard;
  auto p = std::make_unique<parts>(on, row, std::move(weights), with, world, shared);
  if (!p->has_memory())
    return fail(
        "shard: no room on the device for {} pages of {} bytes and {} tokens a step; lower "
        "pages or step tokens",
        config.pages, p->layout.page_bytes(), config.step_tokens);
  p->use_memory();
  std::unique_ptr<device_shard> made(new device_shard(std::move(p)));
  if (auto ready = made->parts_->make_graphs(with); !ready) return ready.why();
  return made;
}

result<std::unique_ptr<device_shard>> device_shard::make(accelerator& on, const cuda_row& row,
                                                         std::unique_ptr<device_weights> weights,
                                                         const device_config& with,
                                                         nccl_world* world) {
  const shard_config& config = with.shard;
  const shard_part& part = config.part;
  uint32_t ranks = part.tensor_size * part.stages;
  check(ranks == (world == nullptr ? 1 : world->world().size()));
  check(world == nullptr ||
        world->world().rank() == part.stage * part.tensor_size + part.tensor_rank);
  check(config.page_tokens > 0 && config.pages > 0 && config.step_tokens > 0);
  check(config.step_tokens < 65536);  // rows are blocks along a grid's y
  const uint32_t vocab = weights->get().shape.vocab;
  if (vocab > draw_vocab_max)
    return fail("shard: a vocabulary of {} tokens; a device draws from {} at most", vocab,
                draw_vocab_max);
  auto shared =
      take_shared(world, device_room::of(weights->get(), config, row.arithmetic, 0).shared_bytes());
  if (!shared) return shared.why();
  auto made = start(on, row, std::move(weights), with, world, *shared);
  if (!made && world != nullptr) world->abort();
  return made;
}

device_shard::device_shard(std::unique_ptr<parts> p) : parts_(std::move(p)) {}

/// Where NCCL does not leave the device, and may still write, its memory is not given back.
device_shard::~device_shard() {
  if (!parts_->leave_nothing()) (void)parts_.release();
}

result<void> device_shard::execute(const step_plan& plan, const step_data& data) {
  auto done = parts_->run(plan, data);
  if (!done && parts_->world != nullptr) parts_->world->abort();
  return done;
}

result<void> device_shard::parts::run(const step_plan& plan, const step_data& data) {
  if (auto fits = check_plan(plan, data, config, shape.vocab); !fits) return fits;
  if (auto fits = check_tables(plan); !fits) return fits;
  error = 0;
  clean(plan);
  if (plan.tokens != 0) compute(plan, data);
  return answer(plan, data);
}

/// The device's room for tables is bounded; the planner's tables of sequences are, too.
result<void> device_shard::parts::check_tables(const step_plan& plan) const {
  for (const plan_entry& e : plan.entries)
    if (e.page_count > room.table_pages)
      return fail("step {}: a page table of {} pages; the shard takes {}", plan.id, e.page_count,
                  room.table_pages);
  if (plan.pages.size() > room.pages())
    return fail("step {}: page tables of {} pages; the shard takes {}", plan.id, plan.pages.size(),
                room.pages());
  return {};
}

/// Wipes, then copies; afterwards pages that the step writes to are known.
void device_shard::parts::clean(const step_plan& plan) {
  for (uint32_t id : plan.wipes) wipe_page(id);
  if (plan.wipe_scratch) wipe_scratch(), wipe_staging();
  for (const page_copy& c : plan.copies) {
    touched[c.to] = 1;
    size_t bytes = size_t{c.tokens} * kv_row_bytes(layout.type, layout.head_dim);
    note(on.copy_stretches(pages.data() + c.to * layout.page_bytes(),
                           pages.data() + c.from * layout.page_bytes(), layout.half_bytes(), bytes,
                           size_t{layout.heads()} * 2));
  }
  for (const plan_entry& e : plan.entries)
    for (uint32_t at = e.position / config.page_tokens;
         at <= (e.position + e.tokens - 1) / config.page_tokens; ++at)
      touched[plan.pages[e.first_page + at]] = 1;
}

void device_shard::parts::wipe_page(uint32_t id) {
  size_t bytes = layout.page_bytes();
  if (touched[id]) note(row.wipe(pages.data() + id * bytes, bytes, on.stream()));
  touched[id] = 0;
}

void device_shard::parts::wipe_scratch() {
  note(row.wipe(activations.data(), activations.size(), on.stream()));
  note(row.wipe(inputs.data(), inputs.size(), on.stream()));
  if (!shared.empty()) note(row.wipe(shared.data(), shared.size(), on.stream()));
}

/// NCCL's own memory, with what is zeros by then.
void device_shard::parts::wipe_staging() {
  if (shared.empty()) return;
  for (nccl_communicator* group : {world->tensor(), world->pipeline()})
    if (group != nullptr) (void)group->wipe(shared.data(), shared.size(), on.stream());
}

/// Puts what the device is to know of a step into pinned memory.
step_form device_shard::parts::tell(const step_plan& plan, const step_data& data) {
  step_form form{.tokens = plan.tokens, .logit_rows = plan.logit_rows};
  if (config.part.first()) std::copy_n(data.token_ids, plan.tokens, here.ids);
  std::ranges::copy(plan.pages, here.pages);
  if (room.vocab != 0) std::ranges::copy(plan.draws, here.draws);
  tell_runs(plan, false, form.runs);
  tell_runs(plan, true, form.last);
  kept.clear();
  for (const plan_entry& e : plan.entries) {
    tell_angles(e);
    if (e.logit_rows != 0 && plan.logit_rows != plan.tokens)
      kept.push_back({e.first_token + e.tokens - e.logit_rows, e.first_logit_row, e.logit_rows});
  }
  form.kept = kept;
  return form;
}

/// All queries of a step, or those that become logits.
void device_shard::parts::tell_runs(const step_plan& plan, bool last, run_counts& counts) {
  token_run* to = last ? here.last_runs : here.runs;
  for (bool longer : {false, true})
    for (const plan_entry& e : plan.entries) {
      uint32_t tokens = last ? e.logit_rows : e.tokens, before = e.tokens - tokens;
      if (tokens == 0 || (tokens > 1) != longer) continue;
      uint32_t row = e.first_token + before;
      *to++ = {row, last ? e.first_logit_row : row, e.position + before, tokens, e.first_page};
      ++(longer ? counts.longer : counts.decodes);
      counts.longest = std::max(counts.longest, tokens);
      if (!longer) counts.tiles = std::max(counts.tiles, attention_tiles(e.position + before, 0));
    }
}

/// Cosines and sines of an entry's tokens, for all layers and heads.
void device_shard::parts::tell_angles(const plan_entry& e) {
  for (size_t i = 0; i < e.tokens; ++i)
    for (size_t pair = 0; pair < room.pairs; ++pair) {
      size_t at = (e.first_token + i) * room.pairs + pair;
      double angle = double(e.position + i) * frequencies[pair];
      here.cosines[at] = float(std::cos(angle) * magnitude);
      here.sines[at] = float(std::sin(angle) * magnitude);
    }
}

/// Of a graph, if one is made for such a step; else 0.
uint32_t device_shard::parts::places_for(const step_plan& plan) const {
  bool decodes = plan.logit_rows == plan.tokens && plan.entries.size() == plan.tokens;
  return decodes ? graphs.places_for(plan.tokens) : 0;
}

/// Of pinned memory, from its begin: what the step is told.
size_t device_shard::parts::told_bytes(const step_plan& plan) const {
  return size_t(reinterpret_cast<std::byte*>(here.pages + plan.pages.size()) -
                pinned_inputs.data());
}

/// The places of a graph that are left over hold zeros in pinned memory: runs of no tokens.
void device_shard::parts::compute(const step_plan& plan, const step_data& data) {
  const uint32_t places = places_for(plan), rows = std::max(places, plan.tokens);
  here = room.inputs_at(pinned_inputs.data(), rows);
  step_form form = tell(plan, data);
  note(on.copy(inputs.data(), pinned_inputs.data(), told_bytes(plan)));
  note(places != 0 ? graphs.queue(places, form.runs.tiles) : stage->queue(form));
  if (room.vocab != 0) draw(plan, room.inputs_at(inputs.data(), rows).draws);
}

/// Behind a graph as behind anything else: graphs have none of it.
void device_shard::parts::draw(const step_plan& plan, const row_draw* draws) {
  size_t all = plan.draws.size();
  for (size_t done = 0; done < all; done += room.draws)
    note(row.draw({.logits = buffers.logits,
                   .stride = room.vocab,
                   .vocab = uint32_t(room.vocab),
                   .draws = draws + done,
                   .count = uint32_t(std::min(room.draws, all - done)),
                   .weights = buffers.draw_weights,
                   .places = buffers.draw_places,
                   .ids = buffers.drawn + done},
                  on.stream()));
}

/// The step's only wait. Nothing of the step stays in pinned memory.
result<void> device_shard::parts::answer(const step_plan& plan, const step_data& data) {
  note(answers.bring(plan, buffers));
  auto done = wait("a step");
  if (done) answers.give(plan, data);
  answers.wipe(plan);
  if (plan.tokens == 0) return done;
  wipe(pinned_inputs.data(), told_bytes(plan));
  return done;
}

/// With others no longer than they live: a device may wait for one that is gone.
result<void> device_shard::parts::wait(const char* what) {
  result<void> alive;
  if (world != nullptr)
    alive = world->wait([this] { return asked(); });
  else
    note(on.finish());
  return error == 0 ? alive : failed(what, error);
}

bool device_shard::parts::asked() {
  bool done = false;
  note(on.ask(done));
  return done || error != 0;
}

/// Whether the device has done all. After the world's end NCCL has left it, or never will.
bool device_shard::parts::leave_nothing() {
  error = 0;
  for (uint32_t id = 0; id < config.pages; ++id) wipe_page(id);
  wipe_scratch();
  auto ended = wait("the end");
  auto until = std::chrono::steady_clock::now() + patience;
  bool done = false;
  while (on.ask(done) == 0 && !done && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (ended) return done;
  // What was still queued when a step failed may have come since.
  wipe(pinned_inputs.data(), pinned_inputs.size());
  answers.wipe_all();
  return done;
}

std::span<std::byte> device_shard::pool() const {
  return {parts_->pages.data(), parts_->pages.size()};
}
std::span<std::byte> device_shard::scratch() const {
  return {parts_->activations.data(), parts_->activations.size()};
}
std::span<std::byte> device_shard::shared() const { return parts_->shared; }
size_t device_shard::page_bytes() const { return parts_->layout.page_bytes(); }
uint32_t device_shard::graphs() const { return parts_->graphs.count(); }

}  // namespace lethe
