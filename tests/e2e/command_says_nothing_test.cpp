// Words that users send, driven through the ways in which things go wrong, are in nothing that a
// process of ours gives out: what it prints, its files, status, metrics, traces, and what it
// answers to who stands between. The control is the same search, shown a line with such a word.
#include <gtest/gtest.h>

#include "runtime/audit/memory_scan.hpp"
#include "tests/e2e/private_path.hpp"
#include "tests/e2e/running_lethe.hpp"

namespace lethe {
namespace {

using namespace audit;

void search_files(const std::string& folder, const needle_finder& finder,
                  std::vector<trace_of>& found) {
  memory_search search(finder);
  search.folder(folder);
  found.insert(found.end(), search.traces().begin(), search.traces().end());
}

// As it is, and as a name of a field or header has to be.
const std::string word = "Qwaxolibruntiskar", low_word = "vyndaphorbesquell";

/// Bytes to a port, then all that comes back until it is hung up on.
std::string talk(uint16_t port, const std::string& bytes) {
  std::string all;
  int fd = connect_to(port);
  if (fd < 0) return all;
  (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  char part[4096];
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  // Who seems to have left is not answered; who says nothing more, and is waited for, ends here.
  ::poll(&p, 1, 300);
  ::shutdown(fd, SHUT_WR);
  while (::poll(&p, 1, 20'000) == 1) {
    ssize_t n = ::recv(fd, part, sizeof part, 0);
    if (n <= 0) break;
    all.append(part, size_t(n));
  }
  ::close(fd);
  return all;
}

std::string post(const std::string& path, const std::string& heads, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + heads +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// What a server may be sent that it can't take, with the words in every place.
std::vector<std::string> wrong_requests() {
  std::vector<std::string> all = {
      word,
      word + "\r\n\r\n",
      word + " / HTTP/1.1\r\n\r\n",
      "GET /" + word + " HTTP/1.1\r\nHost: " + word + "\r\nConnection: close\r\n\r\n",
      "GET / HTTP/" + word + "\r\n\r\n",
      "GET / HTTP/1.1\r\n" + low_word + " " + word + "\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + word + "\r\n\r\n" + word,
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: " + low_word + "\r\n\r\n" + word,
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + word + "\r\n",
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + word,
      std::string("\x16\x03\x01\x02", 4) + word,
      post("/" + word, low_word + ": " + word + "\r\n", word)};
  for (const char* type :
       {"application/json", "message/ohttp-req", "message/ohttp-chunked-req", "text/plain",
        "application/private-token-request", "application/private-token-arbitrary-batch"})
    for (const char* path : {"/", "/token-request", "/v1/chat/completions", "/add-checkpoint",
                             "/.well-known/private-token-issuer-directory"})
      for (const auto& body : {word, "{\"" + low_word + "\":\"" + word + "\"}",
                               "old 0\n\n" + word + "\n1\n" + forms_of_word(word).back().bytes +
                                   "\n\n\u2014 " + word + " AAAA\n",
                               std::string(7, '\0') + word + std::string(300, '\xff')})
        all.push_back(post(path,
                           "Content-Type: " + std::string(type) + "\r\nAuthorization: Bearer " +
                               word + "\r\nOrigin: https://" + low_word + ".example\r\n",
                           body));
  return all;
}

/// Bodies of the API that an engine refuses, or stumbles over.
std::vector<std::string> wrong_bodies(const std::string& model) {
  auto asked = [&](const std::string& more) {
    return R"({"model":")" + model + R"(","max_tokens":4,"messages":[{"role":"user","content":")" +
           word + "\"}]" + more + "}";
  };
  std::string deep(3000, '[');
  return {word,
          "{\"" + word,
          asked("") + word,
          R"({"model":")" + word + R"(","messages":[]})",
          R"({"model":")" + model + R"(","messages":")" + word + "\"}",
          R"({"model":")" + model + R"(","messages":[{"role":")" + word + R"(","content":"a"}]})",
          R"({"model":")" + model + R"(","messages":[{"role":"user","content":[{"type":")" + word +
              "\"}]}]}",
          asked(",\"" + low_word + "\":1"),
          asked(",\"user\":\"" + word + "\",\"priority\":\"" + word + "\""),
          asked(",\"temperature\":\"" + word + "\""),
          asked(",\"max_tokens\":-1"),
          asked(",\"max_tokens\":99999999"),
          asked(",\"stop\":[1,\"" + word + "\"]"),
          asked(",\"stop\":\"\\ud800" + word + "\""),
          asked(",\"logit_bias\":{\"" + word + "\":1}"),
          asked(",\"tools\":[{\"type\":\"" + word + "\"}]"),
          asked(",\"tools\":[],\"tool_choice\":\"" + word + "\""),
          asked(R"(,"guided_regex":"(((")" + word + "\""),
          asked(R"(,"guided_grammar":"root ::= )" + low_word + "\""),
          asked(R"(,"response_format":{"type":")" + word + "\"}"),
          asked(R"(,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":)"
                R"({"type":")" +
                word + "\"}}}"),
          asked(R"(,"response_format":{"type":"json_schema","json_schema":{"name":")" + word +
                R"(","schema":{"$ref":"#/)" + low_word + "\"}}}"),
          asked("") + std::string(1, '\0'),
          "\xff\xfe" + word,
          deep + "\"" + word + "\""};
}

class SaysNothing : public PrivatePath {
 protected:
  void SetUp() override {
    tapped_ = false;
    gateway_more_ = "[listen]\nmetrics = \"127.0.0.1:0\"\n";
    PrivatePath::SetUp();
    buy();
  }

  needle_finder finder() const {
    auto needles = forms_of_word(word);
    for (auto& n : forms_of_word(low_word)) needles.push_back(std::move(n));
    return needle_finder(std::move(needles));
  }
  /// What was found in a text, as a test's reader wants it.
  void look_at(const std::string& text, const std::string& where,
               std::vector<trace_of>& found) const {
    finder().search(text, [&](size_t at, const needle& n) {
      found.push_back({0, at, n.form, where});
    });
  }

  /// Everything that the processes give out of themselves.
  std::vector<trace_of> told(const std::vector<const running_cluster*>& parts) const {
    std::vector<trace_of> found;
    const auto search = finder();
    for (const auto* part : parts) {
      search_files(part->folder() / "", search, found);
      for (std::vector<std::string> ask :
           {std::vector<std::string>{"status"}, {"status", "--json"}}) {
        ask.insert(ask.end(), {"--cluster", part->file});
        auto said = run_lethe(ask);
        look_at(said.out + said.err, "status of " + part->file, found);
      }
    }
    search_files(folder_ / "", search, found);
    return found;
  }
  std::vector<trace_of> traced_and_counted(const running_cluster& cluster) const {
    std::vector<trace_of> found;
    for (const char* page : {"/metrics", "/livez", "/readyz"}) {
      auto said = http_ask(cluster.port("metrics"), page);
      EXPECT_EQ(said.status, 200) << page;
      look_at(said.head + said.body, page, found);
    }
    scratch_folder kept;
    for (std::vector<std::string> ask : {std::vector<std::string>{"list"},
                                         {"follow", "last", "--all"},
                                         {"slow"},
                                         {"stuck"},
                                         {"save", kept / "saved"},
                                         {"export", "--perfetto", kept / "perfetto"},
                                         {"export", "--otlp", kept / "otlp"}}) {
      ask.insert(ask.begin(), "trace");
      ask.insert(ask.end(), {"--cluster", cluster.file});
      auto said = run_lethe(ask);
      EXPECT_EQ(said.exit_code, 0) << ask[1] << said.err;
      look_at(said.out + said.err, "trace " + ask[1], found);
    }
    EXPECT_GT(read_file(kept / "saved").size(), 1000u);
    search_files(kept / "", finder(), found);
    return found;
  }
};

TEST_F(SaysNothing, OfWhatAnEngineRefusesOnThePrivatePath) {
  for (const auto& body : wrong_bodies("ember")) {
    auto said = run_lethe({"fetch", trust_, "--data", body});
    EXPECT_NE(said.exit_code, -1) << said.err;
  }
  EXPECT_NE(run_lethe({"fetch", trust_, "/v1/" + word, "--prompt", word}).exit_code, 0);
  EXPECT_EQ(ask("My dog is called " + word + ".").exit_code, 0);
  {
    running_lethe leaves({"fetch", trust_, "--data",
                          R"({"model":"ember","stream":true,"ignore_eos":true,"max_tokens":900,)"
                          R"("messages":[{"role":"user","content":")" +
                              word + "\"}]}"});
    for (int i = 0; i < 500 && !has(leaves.out(), "content"); ++i) ::usleep(10'000);
  }
  auto found = told({&*issuer_, &*relay_, &*gateway_});
  EXPECT_TRUE(found.empty()) << text_of(found);
  found = traced_and_counted(*gateway_);
  EXPECT_TRUE(found.empty()) << text_of(found);
}

TEST_F(SaysNothing, OfWhatNobodyCanRead) {
  auto key = read_file(trust_);
  key = key.substr(key.find("log = ") + 6);
  running_cluster witness(
      host_of{folder_.write(
                  "witness.toml",
                  "name = \"witness\"\n[witness]\nlisten = \"127.0.0.1:0\"\nfolder = \"witness\"\n"
                  "logs = [" +
                      key.substr(0, key.find('\n')) + "]\n"),
              "local"});
  ASSERT_TRUE(witness.tells("ready")) << witness.errors();
  std::vector<trace_of> found;
  size_t answered = 0;
  for (auto [part, role] : {std::pair{&*issuer_, "issuer"},
                            {&witness, "witness"},
                            {&*relay_, "relay"},
                            {&*gateway_, "gateway"},
                            {&*gateway_, "metrics"}})
    for (const auto& bytes : wrong_requests()) {
      auto said = talk(part->port(role), bytes);
      answered += !said.empty();
      look_at(said, std::string("an answer of the ") + role + " to " + bytes.substr(0, 60), found);
    }
  EXPECT_GT(answered, 500u);
  EXPECT_TRUE(found.empty()) << text_of(found);
  EXPECT_EQ(ask("Hello").exit_code, 0) << "it serves on";
  found = told({&*issuer_, &*relay_, &*gateway_, &witness});
  EXPECT_TRUE(found.empty()) << text_of(found);
  found = traced_and_counted(*gateway_);
  EXPECT_TRUE(found.empty()) << text_of(found);
}

/// An account's secret and its name are words of a user's, too, where the issuer has no business
/// with them.
TEST_F(SaysNothing, OfAnAccountThatBuysWithoutOne) {
  folder_.write("account.secret", word + "\n");
  EXPECT_NE(run_lethe({"tokens", "buy", trust_}).exit_code, 0);
  std::filesystem::remove(folder_ / "account.secret");
  auto found = told({&*issuer_, &*relay_, &*gateway_});
  EXPECT_TRUE(found.empty()) << text_of(found);
}

/// In the lab the face reads requests; it and the engines give out as little of them. An engine is
/// killed in the middle of an answer.
TEST_F(SaysNothing, InTheLabNotEvenWhenAnEngineDies) {
  auto file = folder_.write(
      "lab.toml",
      "name = \"lab\"\n" + lab_config("[engines]\nprocesses = \"separate\"\n[health]\nrestart_ms = "
                                      "10\n[trace]\nmode = \"all\"\n"));
  running_cluster lab(host_of{file, "local"});
  ASSERT_TRUE(lab.tells("ready: 1 of 1")) << lab.errors();
  for (const auto& body : wrong_bodies("tiny"))
    for (const char* path : {"/v1/chat/completions", "/v1/completions"})
      EXPECT_NE(http_ask(lab.port("api"), path, body).status, 0) << body;
  for (const auto& bytes : wrong_requests()) talk(lab.port("api"), bytes);
  std::thread asks([&] {
    http_ask(lab.port("api"), "/v1/completions",
             R"({"model":"tiny","stream":true,"ignore_eos":true,"max_tokens":400,"prompt":")" +
                 word + "\"}");
  });
  auto family = family_of(lab.pid);
  for (pid_t p : family)
    if (p != lab.pid) ::kill(p, SIGKILL);
  EXPECT_GT(family.size(), 1u);
  asks.join();
  // What comes between may be over before anybody looks.
  const std::string ready = "engine 0 on local: ready";
  auto ready_again = [&] { return lab.errors().find(ready) != lab.errors().rfind(ready); };
  for (int i = 0; i < 300 && !ready_again(); ++i) ::usleep(100'000);
  ASSERT_TRUE(ready_again()) << lab.errors();
  for (int i = 0; i < 300 && !is_whole(lab.file); ++i) ::usleep(100'000);
  EXPECT_EQ(http_ask(lab.port("api"), "/v1/completions", completion(4)).status, 200);
  auto found = told({&lab});
  EXPECT_TRUE(found.empty()) << text_of(found);
  found = traced_and_counted(lab);
  EXPECT_TRUE(found.empty()) << text_of(found);
}

/// The control: one line in any of those places is found.
TEST_F(SaysNothing, AndALineThatDoesIsFound) {
  EXPECT_TRUE(told({&*issuer_, &*relay_, &*gateway_}).empty());
  for (const auto* part : {&*issuer_, &*relay_, &*gateway_}) {
    const std::string err = part->folder() / "err", before = read_file(err);
    const auto forms = forms_of_word(word);
    for (const auto& line :
         {"lethe: cannot parse \"" + word + "\"\n", forms[2].bytes, "at " + forms.back().bytes}) {
      std::ofstream(err, std::ios::app) << line;
      auto found = told({part});
      ASSERT_FALSE(found.empty()) << line;
      EXPECT_EQ(found.front().place, err);
      std::filesystem::resize_file(err, before.size());
    }
  }
  std::vector<trace_of> found;
  look_at("lethe:requests_total{prompt=\"" + word + "\"} 1\n", "/metrics", found);
  EXPECT_FALSE(found.empty());
}

}  // namespace
}  // namespace lethe
