#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <latch>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/client/exchange_watcher.hpp"
#include "runtime/client/private_client.hpp"

// One chat to one engine by either path: the plain interface, or a client's private one.
namespace lethe::bench {

using steady = std::chrono::steady_clock;
constexpr http_client_limits patient{.answer_ms = 600'000, .stall_ms = 600'000};

inline double ms_between(steady::time_point a, steady::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}
/// The words of a streamed chat, as JSON writes them, and when the first came and all were said.
class words {
 public:
  /// Whether that was the end.
  bool take(std::string_view piece) {
    const bool before = done;
    rest_ += piece;
    size_t from = 0;
    for (size_t end; (end = rest_.find('\n', from)) != rest_.npos; from = end + 1)
      line(std::string_view(rest_).substr(from, end - from));
    rest_.erase(0, from);
    return done && !before;
  }
  std::string said;
  steady::time_point first, last;
  bool done = false;

 private:
  void line(std::string_view event) {
    constexpr std::string_view name = "\"content\":\"";
    if (event.starts_with("data: [DONE]")) done = true, last = steady::now();
    size_t at = event.find(name);
    if (at == event.npos) return;
    size_t begin = at + name.size(), end = begin;
    while (end < event.size() && event[end] != '"') end += event[end] == '\\' ? 2 : 1;
    if (end == begin) return;
    if (said.empty()) first = steady::now();
    said += event.substr(begin, end - begin);
  }
  std::string rest_;
};

/// One chat, and what its parts took in milliseconds.
struct chat {
  std::string said;
  double first_ms = 0;
  std::map<std::string, double> parts;
};

struct options {
  std::string api, trust, gateway, folder, name = "bench";
  int cluster_pid = 0, relay_pid = 0;
  uint32_t streams = 16, tokens = 64, pairs = 30, calls = 3, first = 60;
};

inline std::string body_of(const options& o, uint64_t serial, uint32_t tokens) {
  return fmt::format(
      R"({{"model":"{}","stream":true,"temperature":0,"ignore_eos":true,"max_tokens":{},)"
      R"("messages":[{{"role":"user","content":"Tell me a story about {:07} dogs."}}]}})",
      o.name, tokens, serial);
}

/// `whole` is called once all words are said; what follows of an answer is padding and receipt.
using path = std::function<chat(const std::string& body, const std::function<void()>& whole)>;

[[noreturn]] inline void give_up(std::string_view why) {
  fmt::print(stderr, "private_bench: {}\n", why);
  std::exit(1);
}

class plain_path {
 public:
  explicit plain_path(const std::string& url) {
    auto at = read_url(url);
    if (!at) give_up(at.why().text);
    to_ = at->first;
    auto client = http_client::start(patient, {});
    if (!client) give_up(client.why().text);
    client_ = *std::move(client);
  }
  chat ask(const std::string& body, const std::function<void()>& whole) {
    words heard;
    auto watcher = std::make_shared<exchange_watcher>();
    const auto begin = steady::now();
    uint64_t id = client_->ask({.to = to_,
                                .method = "POST",
                                .path = "/v1/chat/completions",
                                .fields = {{"Content-Type", "application/json"}},
                                .body = body},
                               watcher);
    const http_reply* head = watcher->wait_head();
    if (head && head->status != 200) give_up(watcher->wait_piece());
    for (auto p = watcher->wait_piece(); !p.empty(); p = watcher->wait_piece()) {
      if (heard.take(p)) whole();
      client_->took(id, p.size());
    }
    auto how = watcher->how();
    if (!head || !how || !*how || !heard.done) give_up("the plain answer is not whole");
    return {std::move(heard.said),
            ms_between(begin, heard.first),
            {{"first", ms_between(begin, heard.first)},
             {"say", ms_between(heard.first, heard.last)},
             {"end", ms_between(heard.last, steady::now())}}};
  }

 private:
  http_origin to_;
  std::unique_ptr<http_client> client_;
};

/// Times what a call does, by what it tells and what it hands on.
class timed_call final : public inner_sink {
 public:
  explicit timed_call(const std::function<void()>& whole) : whole_(whole) {}
  chat run(private_client& client, const std::string& body) {
    const auto begin = steady::now();
    private_ask ask{.path = "/v1/chat/completions", .body = body, .sink = *this};
    ask.observer = [this](const check_step& s) { at_[s.name] = steady::now(); };
    auto answer = client.call(ask);
    const auto end = steady::now();
    if (!answer || !answer.proof) give_up(answer.why.text);
    if (status_ != 200 || !heard_.done) give_up(refusal_);
    chat c{heard_.said, ms_between(begin, heard_.first), {}};
    c.parts = {{"draw", ms_between(begin, at_["draw"])},
               {"token", ms_between(at_["draw"], at_["token"])},
               {"seal", ms_between(at_["token"], at_["seal"])},
               {"way_and_node", ms_between(at_["seal"], heard_.first)},
               {"receipt", ms_between(heard_.last, at_["receipt"])},
               {"first", c.first_ms},
               {"say", ms_between(heard_.first, heard_.last)},
               {"end", ms_between(heard_.last, end)}};
    return c;
  }
  bool head(uint32_t status, std::span<const bhttp_field>) override {
    status_ = status;
    return true;
  }
  bool content(std::string_view piece) override {
    if (status_ != 200)
      refusal_ += piece;
    else if (heard_.take(piece))
      whole_();
    return true;
  }

 private:
  const std::function<void()>& whole_;
  words heard_;
  uint32_t status_ = 0;
  std::string refusal_;
  std::map<std::string, steady::time_point> at_;
};

/// Both ways to one engine, and what is left of tokens.
class both_paths {
 public:
  explicit both_paths(const options& o) : options_(o), plain_(o.api) {
    auto client = private_client::start(o.trust);
    if (!client) give_up(client.end.why.text);
    client_ = std::move(*client);
  }
  private_client& client() { return *client_; }
  path by_plain() {
    return [this](auto& body, auto& whole) { return plain_.ask(body, whole); };
  }
  path by_private() {
    return [this](auto& body, auto& whole) { return timed_call(whole).run(*client_, body); };
  }
  /// Of other words than all before: a body may be drawn for three times only.
  std::string next_body(uint32_t tokens) { return body_of(options_, ++serial_, tokens); }
  std::vector<std::string> next_bodies(size_t count) {
    std::vector<std::string> all(count);
    for (auto& body : all) body = next_body(options_.tokens);
    return all;
  }
  void stock(size_t tokens) {
    while (client_->count().tokens < tokens)
      if (auto bought = client_->buy(); !bought) give_up(bought.end.why.text);
  }
  /// So many streams, each of which asks its next when its last answer is whole. Ends with the last
  /// receipt; `seconds` until the last word.
  std::vector<chat> say(const path& by, const std::vector<std::string>& bodies, uint32_t streams,
                        double& seconds) {
    std::vector<chat> said(bodies.size());
    std::vector<std::jthread> calls(bodies.size());
    {
      std::vector<std::jthread> threads;
      const auto begin = steady::now();
      std::mutex mutex;
      for (uint32_t s = 0; s < streams; ++s)
        threads.emplace_back([&, s] {
          for (size_t i = s; i < bodies.size(); i += streams) {
            auto whole = std::make_shared<std::latch>(1);
            calls[i] = std::jthread(
                [&, i, whole] { said[i] = by(bodies[i], [whole] { whole->count_down(); }); });
            whole->wait();
          }
          std::lock_guard lock(mutex);
          seconds = ms_between(begin, steady::now()) / 1e3;
        });
    }
    calls.clear();
    return said;
  }

 private:
  const options& options_;
  plain_path plain_;
  std::unique_ptr<private_client> client_;
  uint64_t serial_ = 0;
};

}  // namespace lethe::bench
