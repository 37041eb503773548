// What a file may say of witnesses: of one that it runs, and of those that others run.
#include "runtime/config/check_services.hpp"
#include "tests/unit/config_read.hpp"

namespace lethe {
namespace {

using namespace testing;

std::string key(const char* name, note_algorithm algorithm, uint8_t first) {
  hash32 k{};
  k[0] = std::byte{first};
  return note_key::make(name, algorithm, k)->text();
}
const std::string log_key = key("log", note_algorithm::ed25519, 1);
const std::string witness_key = key("outside", note_algorithm::cosignature, 2);

std::string witness_file(const std::string& logs, const std::string& more = {}) {
  return "[witness]\nlisten = \"127.0.0.1:0\"\nfolder = \"w\"\nlogs = [" + logs + "]\n" + more;
}
std::string gateway_file(const std::string& witnesses) {
  return model_line +
         "[gateway]\nlisten = \"127.0.0.1:0\"\nfolder = \"g\"\nissuer = \"http://127.0.0.1:1\"\n"
         "issuer_secret = \"s\"\nwitnesses = [" +
         witnesses + "]\n";
}
std::string quoted(const std::string& text) { return '"' + text + '"'; }

TEST(WitnessFile, IsAServiceOfItsOwn) {
  auto good = check(witness_file(quoted(log_key)));
  EXPECT_EQ(problems(good), "");
  EXPECT_TRUE(good.is_service());
  refuses(witness_file(quoted(log_key), model_line), {"witness: stands beside [model]"});
  refuses(witness_file(quoted(log_key), "[relay]\n"), {"witness: stands beside another service"});
}

TEST(WitnessFile, NeedsLogsEachOnce) {
  refuses(witness_file(""), {"witness.logs: names none"});
  refuses(witness_file("\"log\""), {"witness.logs[0]: note key: "});
  refuses(witness_file(quoted(witness_key)), {"witness.logs[0]: is a witness's key"});
  refuses(witness_file(quoted(log_key) + "," + quoted(log_key)),
          {"witness.logs[1]: log is there before"});
  refuses(witness_file(quoted(log_key), "name = \"a b\"\n"), {"witness.name: must have"});
  refuses("[witness]\nlogs = [" + quoted(log_key) + "]\n",
          {"witness.listen: is missing", "witness.folder: is missing"});
}

TEST(GatewayWitnesses, AreUrlAndKeyEachOnce) {
  const std::string good = "http://127.0.0.1:8400 " + witness_key;
  EXPECT_EQ(problems(check(gateway_file(quoted(good)))), "");
  EXPECT_EQ(witness_text::parse(good)->url, "http://127.0.0.1:8400");
  EXPECT_EQ(witness_text::parse(good)->key.text(), witness_key);
  refuses(gateway_file(quoted(witness_key)), {"gateway.witnesses[0]: is not \"URL KEY\""});
  refuses(gateway_file(quoted("ftp://x " + witness_key)), {"witnesses[0]: must begin with http"});
  refuses(gateway_file(quoted("http://x " + log_key)), {"witnesses[0]: has a log's key"});
  refuses(gateway_file(quoted("http://x k")), {"witnesses[0]: note key: "});
  refuses(gateway_file(quoted(good) + "," + quoted(good)),
          {"gateway.witnesses[1]: its key is there before"});
}

}  // namespace
}  // namespace lethe
