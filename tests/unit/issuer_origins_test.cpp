// Web pages before an issuer: who may buy from a browser, and who may not.

#include "tests/unit/issuer_house.hpp"

namespace lethe {
namespace {

using namespace test;

const std::string page = "https://chat.example";

class IssuerOrigins : public ::testing::Test {
 protected:
  void SetUp() override {
    auto c = house.config();
    c.origins = web_origins({page});
    house.start(c);
  }
  reply preflight(const std::string& path, const std::string& origin = page) {
    return house.send("OPTIONS " + path + " HTTP/1.1\r\nHost: i\r\nOrigin: " + origin +
                      "\r\nAccess-Control-Request-Method: POST\r\n"
                      "Access-Control-Request-Headers: authorization,content-type\r\n\r\n");
  }
  /// A purchase that nobody pays for, from a page.
  reply buy(const std::string& path, const std::string& origin) {
    return house.send("POST " + path + " HTTP/1.1\r\nHost: i\r\nOrigin: " + origin +
                      "\r\nContent-Type: " + std::string(token_batch_request_media) +
                      "\r\nContent-Length: 0\r\n\r\n");
  }
  static std::string allowed(const reply& r) { return r.field("Access-Control-Allow-Origin"); }

  temporary_folder folder;
  issuer_house house{folder / "issuer"};
};

TEST_F(IssuerOrigins, APageThatIsAllowedMayLookAndBuy) {
  for (auto path : {"/token-request", "/token-request-batch"}) {
    auto may = preflight(path);
    EXPECT_EQ(may.status, 204);
    EXPECT_EQ(allowed(may), page);
    EXPECT_EQ(may.field("Access-Control-Allow-Methods"), "POST");
    EXPECT_EQ(may.field("Access-Control-Allow-Headers"), "authorization, content-type");
    EXPECT_EQ(may.field("Access-Control-Allow-Credentials"), "");
  }
  auto refused = buy("/token-request-batch", page);
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(allowed(refused), page);
  auto directory = house.send("GET " + std::string(token_directory_path) +
                              " HTTP/1.1\r\nHost: i\r\nOrigin: " + page + "\r\n\r\n");
  EXPECT_EQ(directory.status, 200);
  EXPECT_EQ(allowed(directory), page);
  EXPECT_EQ(directory.field("Vary"), "Origin");
  EXPECT_TRUE(eventually([&] { return house.runs->numbers().open == 0; }));
}

TEST_F(IssuerOrigins, OtherPagesMayNotAndNoPageAsksForChange) {
  EXPECT_EQ(preflight("/token-request-batch", "https://other").status, 405);
  EXPECT_EQ(allowed(preflight("/token-request-batch", "https://other")), "");
  EXPECT_EQ(allowed(buy("/token-request-batch", "https://other")), "");
  EXPECT_EQ(preflight("/change").status, 405);
  EXPECT_EQ(allowed(preflight("/change")), "");
  EXPECT_EQ(allowed(buy("/change", page)), "");
}

}  // namespace
}  // namespace lethe
