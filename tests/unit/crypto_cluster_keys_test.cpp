// Who is in the cluster: whom its authority signed, and nobody else.
#include "runtime/crypto/cluster_keys.hpp"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <fstream>

#include "runtime/base/mapped_file.hpp"
#include "runtime/crypto/certificate.hpp"

namespace lethe {
namespace {

namespace fs = std::filesystem;

struct folder {
  folder() {
    std::string name = (fs::temp_directory_path() / "lethe-keys-XXXXXX").string();
    path = fs::path(::mkdtemp(name.data())) / "keys";
  }
  ~folder() {
    std::error_code ignored;
    fs::remove_all(path.parent_path(), ignored);
  }
  std::string text(const std::string& name) const { return *read_text(path / name, 1 << 16); }
  fs::path path;
};

const std::vector<named_host> pair{{"north", "10.0.0.1"}, {"south", "south.example"}};

identity read(const folder& f, const std::string& name) {
  auto who = identity_of(f.text(name + ".crt"), f.text(name + ".key"));
  EXPECT_TRUE(who) << (who ? "" : who.why().text);
  return *std::move(who);
}

/// As a peer would look at it: signed by `authority`, valid today, for this use.
bool trusts(X509* authority, X509* who, int purpose) {
  std::unique_ptr<X509_STORE, openssl::releaser<X509_STORE_free>> store(X509_STORE_new());
  std::unique_ptr<X509_STORE_CTX, openssl::releaser<X509_STORE_CTX_free>> context(
      X509_STORE_CTX_new());
  X509_STORE_add_cert(store.get(), authority);
  X509_STORE_CTX_init(context.get(), store.get(), who, nullptr);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return good;
}

TEST(ClusterKeys, SignsEveryHostForBothEndsOfAConnection) {
  folder f;
  auto made = make_cluster_keys(f.path, "c", pair, 30);
  ASSERT_TRUE(made) << made.why().text;
  EXPECT_EQ(made->written.size(), 6u);
  auto ca = read(f, "ca"), north = read(f, "north"), south = read(f, "south");
  for (X509* host : {north.certificate.get(), south.certificate.get()})
    for (int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT})
      EXPECT_TRUE(trusts(ca.certificate.get(), host, purpose));
  EXPECT_EQ(X509_check_ip_asc(north.certificate.get(), "10.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_host(south.certificate.get(), "south.example", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(south.certificate.get(), "north", 0, 0, nullptr), 0);
}

TEST(ClusterKeys, AStrangerIsNotTrusted) {
  folder f, other;
  ASSERT_TRUE(make_cluster_keys(f.path, "c", pair, 30));
  ASSERT_TRUE(make_cluster_keys(other.path, "c", pair, 30));
  auto ca = read(f, "ca"), stranger = read(other, "north");
  EXPECT_FALSE(trusts(ca.certificate.get(), stranger.certificate.get(), X509_PURPOSE_SSL_SERVER));
}

TEST(ClusterKeys, AHostSignsNobody) {
  folder f;
  ASSERT_TRUE(make_cluster_keys(f.path, "c", pair, 30));
  auto ca = read(f, "ca"), north = read(f, "north");
  auto below = make_host(north, "below", "10.0.0.9", 30);
  ASSERT_TRUE(below);
  std::unique_ptr<STACK_OF(X509), openssl::releaser<[](STACK_OF(X509) * s) { sk_X509_free(s); }>>
      chain(sk_X509_new_null());
  sk_X509_push(chain.get(), north.certificate.get());
  std::unique_ptr<X509_STORE, openssl::releaser<X509_STORE_free>> store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), ca.certificate.get());
  std::unique_ptr<X509_STORE_CTX, openssl::releaser<X509_STORE_CTX_free>> context(
      X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), below->certificate.get(), chain.get());
  EXPECT_NE(X509_verify_cert(context.get()), 1);
}

TEST(ClusterKeys, KeysAreTheirOwnersAlone) {
  folder f;
  ASSERT_TRUE(make_cluster_keys(f.path, "c", pair, 30));
  for (const char* name : {"ca.key", "north.key", "south.key"}) {
    struct stat info {};
    ASSERT_EQ(::stat((f.path / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST(ClusterKeys, MakesWhatIsMissingAndKeepsTheRest) {
  folder f;
  ASSERT_TRUE(make_cluster_keys(f.path, "c", {pair[0]}, 30));
  std::string ca = f.text("ca.crt"), north = f.text("north.crt");
  auto again = make_cluster_keys(f.path, "c", pair, 30);
  ASSERT_TRUE(again) << again.why().text;
  EXPECT_EQ(again->written.size(), 2u);
  EXPECT_EQ(again->kept.size(), 2u);
  EXPECT_EQ(f.text("ca.crt"), ca);
  EXPECT_EQ(f.text("north.crt"), north);
  auto authority = read(f, "ca"), south = read(f, "south");
  EXPECT_TRUE(
      trusts(authority.certificate.get(), south.certificate.get(), X509_PURPOSE_SSL_CLIENT));
}

TEST(ClusterKeys, WhatIsBrokenIsNamedAndLeftAlone) {
  folder f;
  ASSERT_TRUE(make_cluster_keys(f.path, "c", pair, 30));
  std::string other = f.text("south.key");
  std::ofstream(f.path / "north.key") << other;
  auto mixed = make_cluster_keys(f.path, "c", pair, 30);
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.why().text.find("north.crt: the key does not belong"), std::string::npos);
  fs::remove(f.path / "ca.key");
  auto headless = make_cluster_keys(f.path, "c", pair, 30);
  ASSERT_FALSE(headless);
  EXPECT_NE(headless.why().text.find("ca.key"), std::string::npos);
  std::ofstream(f.path / "ca.key") << "-----BEGIN NONSENSE-----";
  EXPECT_FALSE(make_cluster_keys(f.path, "c", pair, 30));
}

TEST(ClusterKeys, AFolderThatCannotBe) {
  auto made = make_cluster_keys("/proc/nowhere/keys", "c", pair, 30);
  ASSERT_FALSE(made);
  EXPECT_NE(made.why().text.find("/proc/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace lethe
