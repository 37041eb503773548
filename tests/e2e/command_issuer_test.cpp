// An issuer from its file to its end, and its accounts while it runs.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/e2e/cluster.hpp"

namespace lethe {
namespace {

bool says(const std::string& text, const std::string& what) { return text.find(what) != text.npos; }

std::string issuer_config(const std::string& more = {}) {
  return "name = \"issuer\"\n[issuer]\nlisten = \"127.0.0.1:0\"\nfolder = \"state/issuer\"\n" +
         more;
}

/// The lines of `lethe account list`, by name.
std::map<std::string, std::string> accounts_of(const std::string& file) {
  auto listed = run_lethe({"account", "list", file});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  std::map<std::string, std::string> all;
  std::istringstream lines(listed.out);
  std::getline(lines, all["(head)"]);
  for (std::string line; std::getline(lines, line);) all[line.substr(0, line.find(' '))] = line;
  return all;
}

http_said ask_with(uint16_t port, const std::string& secret) {
  int fd = connect_to(port);
  std::string text =
      "POST /token-request HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
      "application/private-token-request\r\nContent-Length: 1\r\nAuthorization: Bearer " +
      secret + "\r\n\r\nx";
  EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
  std::string all;
  char part[4096];
  for (ssize_t n; (n = ::recv(fd, part, sizeof part, 0)) > 0;) all.append(part, size_t(n));
  ::close(fd);
  return {all.size() > 12 ? std::atoi(all.c_str() + 9) : 0, all, {}};
}

constexpr const char* directory_path = "/.well-known/private-token-issuer-directory";

TEST(Issuer, IsManagedWhileItRuns) {
  running_cluster c(issuer_config());
  ASSERT_TRUE(c.tells("serves as issuer")) << c.errors();
  const auto port = c.port("issuer");
  auto directory = http_ask(port, directory_path);
  EXPECT_EQ(directory.status, 200);
  EXPECT_TRUE(says(directory.head, "application/private-token-issuer-directory"));
  json_answer keys(directory.body);
  ASSERT_TRUE(keys.valid);
  EXPECT_EQ(keys.root["token-keys"].get_array().value_unsafe().size(), 2u);

  auto added = run_lethe({"account", "add", c.file, "ann", "--quota", "128"});
  ASSERT_EQ(added.exit_code, 0) << added.err;
  EXPECT_TRUE(says(added.err, "not shown again"));
  EXPECT_EQ(added.out.size(), 87u);
  EXPECT_EQ(added.out.substr(0, 6), "lethe-");
  const auto secret = added.out.substr(0, 86);
  EXPECT_EQ(ask_with(port, secret).status, 422) << "known, but that is no request";
  EXPECT_EQ(ask_with(port, "lethe-" + std::string(80, '0')).status, 401);

  auto again = run_lethe({"account", "add", c.file, "ann", "--quota", "128"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.out, "");
  EXPECT_TRUE(says(again.err, "an account ann exists")) << again.err;
  EXPECT_TRUE(says(run_lethe({"account", "quota", c.file, "ann", "63"}).err, "buys none"));
  EXPECT_TRUE(says(accounts_of(c.file)["ann"], " 63 "));
  EXPECT_TRUE(says(accounts_of(c.file)["ann"], "buys"));
  EXPECT_EQ(run_lethe({"account", "revoke", c.file, "ann"}).exit_code, 0);
  EXPECT_TRUE(says(accounts_of(c.file)["ann"], "revoked"));
  EXPECT_EQ(ask_with(port, secret).status, 401);

  auto status = run_lethe({"status", "--cluster", c.file});
  EXPECT_TRUE(says(status.out, "issuer: 0 accounts, 0 bought")) << status.out;
  EXPECT_TRUE(says(status.out, "token epoch ")) << status.out;
  EXPECT_TRUE(says(run_lethe({"scale", "engines=2", "--cluster", c.file}).err, "neither engines"));
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

TEST(Issuer, KeepsAccountsKeysAndSecretWhenItDoesNotRun) {
  running_cluster c(issuer_config());
  ASSERT_TRUE(c.tells("serves as issuer")) << c.errors();
  const auto before = http_ask(c.port("issuer"), directory_path).body;
  const auto path = c.folder() / "state/issuer/gateway.secret";
  const auto secret = read_file(path);
  EXPECT_EQ(secret.size(), 65u);
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, mode_t{0600});
  ::kill(c.pid, SIGKILL);
  c.wait();
  ASSERT_EQ(run_lethe({"account", "add", c.file, "bob", "--quota", "64"}).exit_code, 0);
  c.start();
  ASSERT_TRUE(c.tells("serves as issuer")) << c.errors();
  EXPECT_EQ(http_ask(c.port("issuer"), directory_path).body, before);
  EXPECT_EQ(read_file(path), secret);
  EXPECT_TRUE(says(accounts_of(c.file)["bob"], "buys"));
}

TEST(Issuer, HasItsFolderForItself) {
  running_cluster c(issuer_config());
  ASSERT_TRUE(c.tells("serves as issuer")) << c.errors();
  auto text = issuer_config();
  text.replace(text.find("issuer"), 6, "second");
  auto second = run_lethe({"up", c.folder().write("second.toml", text)});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_TRUE(says(second.err, "another process has it open; stop that first")) << second.err;
  EXPECT_EQ(http_ask(c.port("issuer"), directory_path).status, 200);
}

TEST(Issuer, SaysWhatIsWrongInItsFileAndItsAccounts) {
  scratch_folder folder;
  auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    auto got = run_lethe(words);
    EXPECT_NE(got.exit_code, 0);
    EXPECT_TRUE(says(got.err, why)) << got.err;
  };
  auto file = [&](const std::string& text) { return folder.write("issuer.toml", text); };
  refused({"up", file("[issuer]\nlisten = \"127.0.0.1:0\"\n")}, "issuer.folder: is missing");
  refused({"up", file(issuer_config("batch = 257\n"))}, "issuer.batch");
  refused({"up", file(issuer_config("epoch_s = 86399\n"))}, "issuer.epoch_s");
  refused({"up", file(issuer_config("[model]\npath = \"m\"\n"))},
          "a file and a process of its own");
  refused({"up", file(issuer_config("certificate = \"none.pem\"\nkey = \"none.pem\"\n"))},
          "none.pem");
  auto relay = file("[relay]\nlisten = \"127.0.0.1:0\"\ngateway = \"http://127.0.0.1:1/\"\n");
  refused({"account", "list", relay}, "has no [issuer]");
  auto good = file(issuer_config());
  refused({"account", "add", good, "Ann", "--quota", "1"}, "a-z 0-9");
  refused({"account", "add", good, "ann"}, "--quota");
  refused({"account", "revoke", good, "cay"}, "there is no account cay");
  refused({"account", "quota", good, "cay", "5"}, "there is no account cay");
  EXPECT_TRUE(says(run_lethe({"account", "add", "--help"}).out, "lethe account add configs"));
}

}  // namespace
}  // namespace lethe
