// What an engine's actors tell the leading process of requests: that they ended, where there was
// no room, and of lengths only what many of them had together.
#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <gtest/gtest.h>

#include "actors/cluster/engine_actor.hpp"
#include "runtime/crypto/refusal.hpp"
#include "runtime/crypto/sealed_message.hpp"
#include "runtime/telemetry/telemetry.hpp"
#include "tests/places.hpp"
#include "tests/unit/token_samples.hpp"

namespace lethe::test {
namespace {

/// Computes nothing, and takes as many requests as its test says.
class idle_engine final : public engine {
 public:
  idle_engine(uint32_t takes, engine_numbers numbers, const bool& fails)
      : takes_(takes), numbers_(numbers), fails_(fails) {
    config_.context = 1024;
  }
  result<void> fits(const request&) const override { return {}; }
  result<void> submit(request&) override {
    if (takes_ == 0) return fail("full");
    --takes_;
    return {};
  }
  void stop(request&, uint32_t) override {}
  void cancel(request&) override {}
  engine_numbers numbers() const override { return numbers_; }
  const engine_config& config() const override { return config_; }
  const grid& ranks() const override { std::abort(); }
  bytes_view step_bytes() const override { return {}; }
  result<void> health() const override {
    return fails_ ? fail("row 1234 is not a number") : result<void>();
  }

 private:
  engine_config config_;
  uint32_t takes_;
  engine_numbers numbers_;
  const bool& fails_;
};

struct sim_config final : caf::actor_system_config {
  sim_config() {
    set("scheduler.policy", caf::atom("testing"));
    add_message_types<caf::id_block::lethe_messages>();
  }
};

/// What scheduler, directory and client were told.
struct heard {
  std::vector<requests_took> took;  // one for each request that ended
  std::vector<schema::Outcome> outcomes;
  uint64_t told = 0;  // of those that said something of lengths
  struct load {
    uint64_t prefilled, decoded, wiped, reserved, resident;
  };
  std::vector<load> loads;
  bytes node;
  struct loss {
    schema::LossReason why;
    bytes refusal;
  };
  std::vector<loss> lost;
  uint32_t answers = 0;
  std::vector<std::string> failures;  // of the engine
};

scheduler_actor::behavior_type hearing_scheduler(scheduler_actor::pointer, heard* h) {
  return {
      [](const wire<schema::Place>&) {},
      [](const wire<schema::Submit>&) {},
      [](const wire<schema::Cancel>&) {},
      [h](const wire<schema::Release>& m) {
        (void)bool(unpack(m, [h](schema::Release::Reader r) {
          h->outcomes.push_back(r.getOutcome());
          h->told += r.hasTook();
          h->took.push_back(requests_took::read(r.getTook()));
        }));
      },
      [](const wire<schema::EngineState>&) {},
      [h](const wire<schema::EngineLoad>& m) {
        (void)bool(unpack(m, [h](schema::EngineLoad::Reader r) {
          h->loads.push_back({r.getPrefilled(), r.getDecoded(), r.getPagesWiped(),
                              r.getPagesReserved(), r.getResidentBytes()});
        }));
      },
      [](const wire<schema::Drain>&) {},
      [](const wire<schema::Leave>&) {},
      [h](const wire<schema::NodeKey>& m) {
        (void)bool(unpack(
            m, [h](schema::NodeKey::Reader r) { h->node = copy_of(bytes_of(r.getNode())); }));
      },
      [](const wire<schema::LoadsAsk>&) { return wire<schema::Loads>(); },
  };
}

directory_actor::behavior_type hearing_directory(directory_actor::pointer, heard* h) {
  return {
      [](const wire<schema::Join>&) { return wire<schema::Joined>(); },
      [h](const wire<schema::EngineState>& m) {
        (void)bool(unpack(m, [h](schema::EngineState::Reader r) {
          if (r.getPhase() == schema::Phase::FAILED) h->failures.emplace_back(r.getReason());
        }));
      },
      [](const wire<schema::EngineEnded>&) {},
      [](const wire<schema::NodeKey>&) {},
      [](const wire<schema::TokenKeys>&) {},
      [](const wire<schema::ServiceState>&) {},
      [](const wire<schema::ControlAsk>&) { return wire<schema::ControlAnswer>(); },
      [](tick) {},
  };
}

face_actor::behavior_type hearing_face(face_actor::pointer, heard* h) {
  return {
      [](const wire<schema::Placed>&) {},
      [h](const wire<schema::Answer>&) { ++h->answers; },
      [h](const wire<schema::Lost>& m) {
        (void)bool(unpack(m, [h](schema::Lost::Reader r) {
          h->lost.push_back({r.getReason(), copy_of(bytes_of(r.getRefusal()))});
        }));
      },
      [](stirred) {},
      [](tick) {},
  };
}

/// An engine's actor in one thread, adopted by a scheduler that writes down what it hears.
class engine_stage {
 public:
  engine_stage(bool tokens_only, uint32_t takes, engine_numbers numbers = {})
      : jobs_(dynamic_cast<caf::scheduler::test_coordinator&>(sys_.scheduler())) {
    jobs_.run();
    scheduler_ = sys_.spawn(hearing_scheduler, &says);
    directory_ = sys_.spawn(hearing_directory, &says);
    face_ = sys_.spawn(hearing_face, &says);
    auto model = served_model::open(
        {.path = std::string(places::source) + "/models/tiny", .name = "tiny", .threads = 1});
    EXPECT_TRUE(model) << model.why().text;
    engine_setup setup{
        .slot = 3,
        .epoch = 1,
        .tokens_only = tokens_only,
        .trace = &trace_,
        .open = [&](const opening&) -> result<opened_engine> {
          return opened_engine{*model, std::make_unique<idle_engine>(takes, numbers, fails)};
        }};
    engine_ = sys_.spawn(run_engine, setup, directory_);
    jobs_.run();
    caf::send_as(scheduler_, engine_, pack<schema::Adopted>({}, [](auto b) {
                   b.setSlot(3);
                   b.setEpoch(1);
                 }));
    jobs_.run();
  }
  ~engine_stage() {
    for (const auto& a :
         {caf::actor_cast<caf::actor>(engine_), caf::actor_cast<caf::actor>(scheduler_),
          caf::actor_cast<caf::actor>(directory_), caf::actor_cast<caf::actor>(face_)})
      caf::anon_send_exit(a, caf::exit_reason::kill);
    engine_ = nullptr;
    scheduler_ = nullptr;
    directory_ = nullptr;
    face_ = nullptr;
    jobs_.run();
  }

  /// As its request's actor says it.
  void end_request(const ended_request& r) {
    requests_took took;
    took.add(r);
    caf::anon_send(engine_, pack<schema::Release>({}, [&](schema::Release::Builder b) {
                     b.setRequest(++requests_);
                     b.setEngine(3);
                     b.setEpoch(1);
                     took.write(b.initTook());
                   }));
    jobs_.run();
  }
  heard::load load() {
    jobs_.advance_time(std::chrono::milliseconds(200));
    jobs_.run();
    return says.loads.back();
  }
  node_public begin_roster() {
    caf::anon_send(engine_, pack<schema::BeginEpoch>({}, [](schema::BeginEpoch::Builder b) {
                     b.setSlot(3);
                     b.setEpoch(1);
                     b.setRoster(7);
                     b.setGraceS(60);
                     b.initTokenKeys(1).set(0, data_of(key_of_test(0).published().spki()));
                   }));
    jobs_.run();
    return *node_public::from_bytes(says.node);
  }
  void submit(bytes_view sealed, bytes_view token) {
    caf::send_as(face_, engine_, pack<schema::Submit>({}, [&](schema::Submit::Builder b) {
                   b.setRequest(++requests_);
                   b.setEngine(3);
                   b.setEpoch(1);
                   b.setSealed(data_of(sealed));
                   b.setToken(data_of(token));
                 }));
    jobs_.run();
  }

  heard says;
  bool fails = false;  // the engine's ranks, from now on

 private:
  sim_config config_;
  caf::actor_system sys_{config_};
  caf::scheduler::test_coordinator& jobs_;
  tracer trace_{{.mode = trace_mode::off}};
  scheduler_actor scheduler_;
  directory_actor directory_;
  face_actor face_;
  engine_actor engine_;
  uint64_t requests_ = 0;
};

ended_request of_length(uint32_t tokens) {
  return {.served = true, .prompt_tokens = tokens, .answer_tokens = tokens, .arenas = 2};
}

TEST(EngineTells, OfLengthsOnlyWhatManyRequestsHadTogether) {
  constexpr auto least = uint32_t(metrics_gate::requests_least);
  engine_stage s(true, 0);
  for (uint32_t i = 1; i < least; ++i) s.end_request(of_length(i));
  EXPECT_EQ(s.says.outcomes.size(), least - 1) << "that they ended is told at once";
  EXPECT_EQ(s.says.told, 0u) << "one too few";
  s.end_request(of_length(least));
  ASSERT_EQ(s.says.told, 1u);
  EXPECT_EQ(s.says.took.back().prompt_tokens, least * (least + 1) / 2);
  EXPECT_EQ(s.says.took.back().arenas, 2 * least);
  s.end_request(of_length(1000));
  EXPECT_EQ(s.says.told, 1u) << "the next lot begins";
}

// The control: the same search finds each request's length in the lab.
TEST(EngineTells, EachRequestsLengthInTheLab) {
  engine_stage s(false, 0);
  for (uint32_t tokens : {5u, 700u}) {
    s.end_request(of_length(tokens));
    EXPECT_EQ(s.says.took.back().prompt_tokens, tokens);
    EXPECT_EQ(s.says.took.back().of_served.of(length_measure::answer).sum, tokens);
  }
  EXPECT_EQ(s.says.told, 2u);
}

TEST(EngineTells, ItsLoadSaysHowFullItIsAndNothingOfOneRequest) {
  const engine_numbers n{.pages = 1000,
                         .pages_reserved = 37,
                         .tokens_prefilled = 123,
                         .tokens_decoded = 45,
                         .pages_wiped = 6};
  engine_stage lab(false, 0, n);
  auto seen = lab.load();
  EXPECT_EQ(seen.prefilled, 123u);
  EXPECT_EQ(seen.decoded, 45u);
  EXPECT_EQ(seen.wiped, 6u);
  EXPECT_EQ(seen.reserved, 37u);

  engine_stage s(true, 0, n);
  seen = s.load();
  EXPECT_EQ(seen.prefilled + seen.decoded + seen.wiped, 0u);
  EXPECT_EQ(seen.reserved, 101u) << "a tenth and a bit";
  EXPECT_EQ(seen.resident % metrics_gate::bytes_rounded, 0u);
  for (uint32_t i = 0; i < metrics_gate::requests_least; ++i) s.end_request(of_length(3));
  seen = s.load();
  EXPECT_EQ(seen.prefilled, 123u);
  EXPECT_EQ(seen.decoded, 45u);
  EXPECT_EQ(seen.wiped, 6u);
}

TEST(EngineTells, ThatItsRanksFailedAndTheirWordsOnlyInTheLab) {
  engine_stage lab(false, 0), s(true, 0);
  lab.fails = s.fails = true;
  (void)lab.load();
  (void)s.load();
  EXPECT_EQ(lab.says.failures, std::vector<std::string>{"row 1234 is not a number"});
  EXPECT_EQ(s.says.failures, std::vector<std::string>{"its ranks failed"});
  EXPECT_EQ(end_named(s.says.failures.at(0)), schema::End::RANKS);
}

bytes sealed_ask(const node_public& to, const private_token& token, std::string_view prompts) {
  std::pmr::string plain;
  bhttp_field type{"content-type", "application/json"};
  auto body = fmt::format(R"({{"model":"tiny","prompt":{},"max_tokens":1}})", prompts);
  EXPECT_TRUE(write_request(
      {.authority = "lethe", .path = "/v1/completions", .fields = {&type, 1}, .content = body},
      plain));
  return seal_request(as_bytes(plain), {&to, 1}, 7, token.hash())->message;
}

TEST(EngineThatIsFull, RefusesWithItsSignatureAndNoReceipt) {
  engine_stage s(true, 0);
  auto node = s.begin_roster();
  auto token = token_under(key_of_test(0));
  auto sealed = sealed_ask(node, token, R"("Once")");
  s.submit(sealed, token.to_bytes());
  EXPECT_EQ(s.says.answers, 0u);
  ASSERT_EQ(s.says.lost.size(), 1u);
  EXPECT_EQ(s.says.lost[0].why, schema::LossReason::ENGINE_FULL);
  auto binding = sealed_message::parse(sealed)->binding(token.hash());
  auto read = verify_refusal(s.says.lost[0].refusal, node.sigpk, binding);
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(read->reason, refusal_reason::full);
  EXPECT_EQ(s.says.outcomes, std::vector{schema::Outcome::FAILED});
  // What is wrong with a request is still said under the seal, with a receipt.
  auto other = token_under(key_of_test(0));
  s.submit(sealed_ask(node, other, "17.5"), other.to_bytes());
  EXPECT_GT(s.says.answers, 0u);
  EXPECT_EQ(s.says.lost.size(), 1u);
}

}  // namespace
}  // namespace lethe::test
