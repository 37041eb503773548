// The private path over TLS alone, with certificates as `lethe keys init` makes them; and each leg
// where something is wrong with them.
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "tests/e2e/private_path.hpp"
#include "tests/e2e/running_lethe.hpp"

namespace lethe {
namespace {

template <auto Free>
struct freed {
  template <class T>
  void operator()(T* t) const {
    Free(t);
  }
};

/// Keys in a folder, made by the program: an authority, and a certificate of it for each name.
class certified {
 public:
  certified(const scratch_folder& files, const std::string& name) : files_(files), name_(name) {
    make("here", "127.0.0.1");
  }
  void make(const std::string& host, const std::string& address) const {
    auto file = files_.write(
        name_ + ".toml", "name = \"" + name_ + "\"\n[[hosts]]\nname = \"" + host +
                             "\"\naddress = \"" + address + "\"\n[tls]\nfolder = \"" + name_ +
                             "\"\n[relay]\nlisten = \"127.0.0.1:0\"\ngateway = \"https://here\"\n");
    auto made = run_lethe({"keys", "init", file});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }
  std::string authority() const { return path("ca.crt"); }
  std::string lines(const std::string& host = "here") const {
    return "certificate = \"" + path(host + ".crt") + "\"\nkey = \"" + path(host + ".key") + "\"\n";
  }
  /// One whose time was yesterday.
  void make_expired(const std::string& host) const {
    make(host, "127.0.0.1");
    auto c = read<X509, freed<X509_free>>(host + ".crt", PEM_read_X509);
    auto ca = read<EVP_PKEY, freed<EVP_PKEY_free>>("ca.key", PEM_read_PrivateKey);
    ASSERT_TRUE(c && ca);
    X509_gmtime_adj(X509_getm_notBefore(c.get()), -86400);
    X509_gmtime_adj(X509_getm_notAfter(c.get()), -60);
    ASSERT_GT(X509_sign(c.get(), ca.get(), EVP_sha256()), 0);
    file_ptr f(std::fopen(path(host + ".crt").c_str(), "w"));
    ASSERT_EQ(PEM_write_X509(f.get(), c.get()), 1);
  }

 private:
  struct closed {
    void operator()(FILE* f) const { std::fclose(f); }
  };
  using file_ptr = std::unique_ptr<FILE, closed>;
  template <class T, class Free, class Read>
  std::unique_ptr<T, Free> read(const std::string& file, Read pem) const {
    file_ptr f(std::fopen(path(file).c_str(), "r"));
    return std::unique_ptr<T, Free>(f ? pem(f.get(), nullptr, nullptr, nullptr) : nullptr);
  }
  std::string path(const std::string& file) const { return files_ / (name_ + "/" + file); }

  const scratch_folder& files_;
  std::string name_;
};

/// The text behind `KEY = "`, up to the next quote.
std::string quoted_after(const std::string& text, const std::string& key) {
  auto at = text.find(key + " = \"");
  if (at == text.npos) return {};
  at += key.size() + 4;
  return text.substr(at, text.find('"', at) - at);
}

class PrivateTls : public PrivatePath {
 protected:
  void SetUp() override {
    http_ = "https";
    authorities_ = good_.authority();
    certificate_ = good_.lines();
    PrivatePath::SetUp();
  }
  void before_gateway() override {
    auto file = folder_.write("gateway.toml", gateway_config("127.0.0.1:0"));
    auto trust = run_lethe({"keys", "public", file, "--relay", "https://here"});
    ASSERT_EQ(trust.exit_code, 0) << trust.err;
    auto w = folder_.write("witness.toml",
                           "name = \"witness\"\n[witness]\nlisten = \"127.0.0.1:0\"\nfolder = "
                           "\"witness\"\nlogs = [\"" +
                               quoted_after(trust.out, "log") + "\"]\n" + certificate_);
    witness_.emplace(host_of{w, "local"});
    ASSERT_TRUE(witness_->tells("ready")) << witness_->errors();
    auto key = run_lethe({"keys", "public", w}).out;
    witness_line_ = "witnesses = [\"" + url_of(witness_->port("witness")) + " " +
                    key.substr(0, key.find('\n')) + "\"]\n";
    gateway_more_ = witness_line_ + "witness_authorities = \"" + authorities_ +
                    "\"\n[engines]\nprocesses = \"separate\"\n[health]\nlost_after_ms = 600000\n";
  }
  /// The trust file, with one line changed.
  std::string trust_with(const std::string& key, const std::string& value) const {
    auto text = read_file(trust_);
    auto at = text.find("\n" + key + " = ");
    EXPECT_NE(at, text.npos) << text;
    auto end = value.starts_with('[') ? text.find(']', at) + 1 : text.find('\n', at + 1);
    text.replace(at + 1, end - at - 1, key + " = " + value);
    return folder_.write("changed.toml", text);
  }
  /// Another relay, and what a client is told who goes through it.
  finished through(const std::string& config, const std::string& http = "https") {
    auto text = config;
    text.replace(text.find("relay"), 5, "relay2");
    running_cluster relay(host_of{folder_.write("relay2.toml", text), "local"});
    EXPECT_TRUE(relay.tells("ready")) << relay.errors();
    url_ = http + "://127.0.0.1:" + std::to_string(relay.port("relay"));
    auto said =
        run_lethe({"fetch", trust_with("relays", "[\"" + url_ + "\"]"), "--prompt", "Hello"});
    EXPECT_EQ(said.exit_code, 1) << said.out;
    relay_status_ = run_lethe({"status", "--cluster", folder_ / "relay2.toml"}).out;
    return said;
  }
  static std::string replaced(std::string text, const std::string& what, const std::string& by) {
    auto at = text.find(what);
    EXPECT_NE(at, text.npos) << what << " in " << text;
    return at == text.npos ? text : text.replace(at, what.size(), by);
  }
  std::string own_relay() const { return relay_config(before_gateway_->port()); }

  certified good_{folder_, "good"}, other_{folder_, "other"};
  std::optional<running_cluster> witness_;
  std::string witness_line_, url_, relay_status_;
};

TEST_F(PrivateTls, EverythingGoesOverIt) {
  buy();
  auto said = ask("My dog is called Pim. What is my dog called?", {"--explain"});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "Your dog is called Pim.")) << said.out;
  EXPECT_TRUE(has(said.err, "2 of 2 witnesses")) << said.err;
  said = run_lethe({"chat", trust_}, "My cat is called Tom.\nWhat is my cat called?\n");
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "Tom")) << said.out;
  {
    running_lethe proxy({"proxy", trust_, "--listen", "127.0.0.1:0"});
    for (int i = 0; i < 3000 && !proxy.out().ends_with('\n'); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto line = proxy.out();
    auto got =
        http_ask(uint16_t(std::atoi(line.c_str() + line.rfind(':') + 1)), "/v1/chat/completions",
                 R"({"model":"ember","messages":[{"role":"user","content":"Hello"}]})");
    EXPECT_EQ(got.status, 200) << got.body;
  }
  for (const auto* between : {&*before_issuer_, &*before_relay_, &*before_gateway_}) {
    EXPECT_GT(between->seen().size(), 3000u);
    for (const char* word : {"HTTP/1.1", "Host:", "message/ohttp", "Bearer", "Pim"})
      EXPECT_FALSE(between->saw(word)) << word;
  }
}

/// The engine is lost with a request in it, whose change goes to the issuer and back.
TEST_F(PrivateTls, ChangeToo) {
  buy();
  json_answer status(run_lethe({"status", "--json", "--cluster", gateway_file_}).out);
  ASSERT_TRUE(status.valid);
  auto engine = pid_t(status.root["engines"].get_array().at(0)["pid"].get_uint64().value_unsafe());
  ::kill(engine, SIGSTOP);
  running_lethe waits({"fetch", trust_, "--prompt", "What is a river?", "--explain"});
  ASSERT_TRUE(gateway_counts("spent", 1)) << waits.err();
  ::kill(engine, SIGKILL);
  auto said = waits.wait();
  EXPECT_TRUE(has(said.err, "ok     change         a new token for the refused one")) << said.err;
}

TEST_F(PrivateTls, AClientTellsWhichLegIsWrong) {
  auto said = run_lethe(
      {"fetch", trust_with("authorities", "\"" + other_.authority() + "\""), "--prompt", "Hello"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "relay: " + url_of(before_relay_->port()) + ": no connection with TLS"))
      << said.err;
  auto issuer_url = [&](const std::string& http, uint16_t port) {
    return trust_with("issuer", "\"" + http + "://127.0.0.1:" + std::to_string(port) + "\"");
  };
  // A service of the right authority that is not what the port is: plain, where TLS is spoken.
  said = run_lethe({"tokens", "buy", issuer_url("http", before_issuer_->port())});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "issuer: it is not reached: http://")) << said.err;
  EXPECT_TRUE(has(said.err, "https")) << "says how to mend it: " << said.err;
  for (const auto* between : {&*before_relay_, &*before_gateway_})
    EXPECT_FALSE(between->saw("HTTP/1.1")) << "something fell back";
}

TEST_F(PrivateTls, ARelaysCertificateIsOfItsNameAndOfToday) {
  good_.make("there", "127.0.0.2");
  auto said = through(replaced(own_relay(), good_.lines(), good_.lines("there")));
  EXPECT_TRUE(has(said.err, "relay: " + url_ + ": no connection with TLS: ")) << said.err;
  EXPECT_TRUE(has(said.err, "ismatch")) << said.err;
  good_.make_expired("late");
  said = through(replaced(own_relay(), good_.lines(), good_.lines("late")));
  EXPECT_TRUE(has(said.err, "relay: " + url_ + ": no connection with TLS: ")) << said.err;
  EXPECT_TRUE(has(said.err, "expired")) << said.err;
}

TEST_F(PrivateTls, PlainHttpAndTlsDoNotMeet) {
  auto said = through(own_relay(), "http");
  EXPECT_TRUE(has(said.err, "relay: " + url_ + ": ")) << said.err;
  EXPECT_TRUE(has(said.err, "https")) << "says how to mend it: " << said.err;
  said = through(replaced(own_relay(), certificate_, ""));
  EXPECT_TRUE(has(said.err, "relay: " + url_ + ": no connection with TLS: ")) << said.err;
}

TEST_F(PrivateTls, ARelayThatCannotTrustItsGatewayPassesNothingOn) {
  auto said = through(replaced(own_relay(), authorities_, other_.authority()));
  EXPECT_TRUE(has(said.err, "the relay answers 502")) << said.err;
  EXPECT_TRUE(has(relay_status_, "the gateway: https://127.0.0.1:")) << relay_status_;
  EXPECT_TRUE(has(relay_status_, "no connection with TLS")) << relay_status_;
  said = through(replaced(own_relay(), "gateway = \"https", "gateway = \"http"));
  EXPECT_TRUE(has(said.err, "the relay answers 502")) << said.err;
  EXPECT_TRUE(has(relay_status_, "the gateway: http://127.0.0.1:")) << relay_status_;
}

TEST_F(PrivateTls, AGatewayThatCannotTrustIssuerOrWitnessSaysSo) {
  gateway_more_ = witness_line_ + "witness_authorities = \"" + other_.authority() + "\"\n";
  authorities_ = other_.authority();
  auto file = folder_.write("third.toml", gateway_config("127.0.0.1:0", "third", "third"));
  running_cluster third(host_of{file, "local"});
  ASSERT_TRUE(third.tells("ready")) << third.errors();
  std::string status;
  auto says = [&](const char* what) {
    for (int i = 0; i < 300 && !has(status, what); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      status = run_lethe({"status", "--cluster", file}).out;
    }
    return has(status, what);
  };
  EXPECT_TRUE(says("the issuer is not reached: https://127.0.0.1:")) << status;
  EXPECT_TRUE(says("witness witness is not reached: https://127.0.0.1:")) << status;
  EXPECT_TRUE(has(status, "no connection with TLS")) << status;
  EXPECT_TRUE(has(status, "0 roster")) << status;
}

}  // namespace
}  // namespace lethe
