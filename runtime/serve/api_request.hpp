#pragma once

#include "runtime/api/api_ask.hpp"
#include "runtime/api/write_answer.hpp"
#include "runtime/serve/answer_text.hpp"
#include "runtime/serve/served_model.hpp"

namespace lethe {

struct answer_head {
  int status = 200;
  const char* content_type = "application/json";
  uint32_t retry_after_s = 0;
  std::optional<size_t> content_length;  // none: a stream
};

/// Where an answer goes, whatever carries it: first its head, then pieces of its body.
class answer_sink {
 public:
  virtual ~answer_sink() = default;
  virtual void head(const answer_head& h) = 0;
  virtual void piece(std::string_view bytes) = 0;
};

/// What all requests of an engine share.
struct api_service {
  std::shared_ptr<const served_model> model;
  engine* serving = nullptr;
  api_rules rules;
};

/// What a forgotten request leaves: numbers.
struct api_report {
  uint32_t arenas = 0;
  uint64_t bytes_wiped = 0;
  uint32_t prompt_tokens = 0, answer_tokens = 0;
  request_times times;  // of all its prompts: the earliest beginnings, the latest end
};

/// One call of the API from body to answer. It knows neither actors nor sockets: its owner hands
/// it bytes and calls `pump` when the engine has changed something.
class api_request {
 public:
  static result<std::unique_ptr<api_request>> make(const api_service& by, size_t body_bytes);
  ~api_request();

  /// The body lives here, before `begin` and until `forget`.
  std::pmr::memory_resource* memory() { return memory_.resource(); }

  /// Understands a body and submits it; an error is answered at once. False: the engine does not
  /// take it now. Nothing was said, and it is over as soon as the engine has let go of it.
  bool begin(api_call call, std::string_view body, std::shared_ptr<request_watcher> watcher,
             answer_sink& out);
  /// Answers with an error instead: true.
  bool refuse(const api_error& why, answer_sink& out);
  /// Writes what is new.
  void pump(answer_sink& out);
  /// Nobody reads on.
  void cancel();
  /// Everything is said and the engine is done with it.
  bool over() const;
  /// Wipes all arenas. Only when it is over.
  api_report forget();

 private:
  /// One choice of the answer, and how much of it is said.
  struct spoken {
    request* from;
    uint32_t choice;
    answer_text text;
    std::optional<tool_reader> tools;  // if calls may be among it
    size_t said_bytes = 0;             // of its words
    uint32_t said_tokens = 0, said_token_bytes = 0, said_calls = 0;
    bool begun = false;  // something was said
    bool ended = false;  // nothing follows what is read
    bool over = false;   // and that is said

    std::string_view words() const { return tools ? tools->content() : text.text(); }
    std::span<const tool_call> calls() const {
      return tools ? tools->calls() : std::span<const tool_call>();
    }
  };
  /// All that is not the engine's. In the arena, and ended before it.
  struct state {
    explicit state(std::pmr::memory_resource* below) : pool(below), ask(&pool), choices(&pool) {}
    std::pmr::unsynchronized_pool_resource pool;  // pieces come and go: their memory serves again
    api_ask ask;
    std::pmr::vector<spoken> choices;
    std::string id;  // random
    std::optional<answer_writer> writer;
  };

  api_request(const api_service& by, arena memory) : by_(by), memory_(std::move(memory)) {}
  // api_request.cpp: from body to engine
  api_refusal understand(std::string_view body);
  result<std::pmr::vector<uint32_t>> prompt_ids(uint32_t i);
  api_refusal add_prompt(uint32_t i, const std::shared_ptr<request_watcher>& watcher);
  void add_choice(request& part, uint32_t choice, stop_matcher stops);
  api_refusal prepare(const std::shared_ptr<request_watcher>& watcher);
  bool submit_all();
  // api_request_answer.cpp: from engine to answer
  finish_reason reason_of(const spoken& s) const;
  const char* said_reason(const spoken& s) const;
  std::pmr::vector<said_token> tokens_of(const spoken& s, uint32_t first, uint32_t last,
                                         std::pmr::vector<said_alternative>& top) const;
  bool read(spoken& s);
  void say_more(spoken& s, answer_sink& out);
  void say_whole(answer_sink& out);
  void end_stream(answer_sink& out);
  void fail_late(const api_error& why, answer_sink& out);
  std::pmr::string echo_of(const spoken& s) const;
  api_usage usage() const;

  const api_service& by_;
  arena memory_;
  state* state_ = nullptr;
  std::vector<std::unique_ptr<request>> parts_;  // one for each prompt
  bool answered_ = false;
};

}  // namespace lethe
