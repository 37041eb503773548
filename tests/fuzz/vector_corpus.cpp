// Writes published and own test vectors as corpora, each for the target that reads such bytes:
// vector_corpus DATA VECTORS OUT. Published ones may not be copied into the repository: where they
// are not, only those in tests/data are written.

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/bhttp/request.hpp"
#include "runtime/gateway/inner_request.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/log/log_entry.hpp"
#include "runtime/log/roster.hpp"
#include "runtime/log/signed_head.hpp"
#include "runtime/token/base64url.hpp"
#include "runtime/token/token_challenge.hpp"
#include "runtime/token/token_directory.hpp"
#include "tests/fuzz/ohttp_examples.hpp"

namespace lethe {
namespace {

namespace fs = std::filesystem;
using simdjson::dom::element;
using bytes = std::vector<std::byte>;

/// Files of what each target is fed, with what it wants in front.
class corpora {
 public:
  explicit corpora(fs::path out) : out_(std::move(out)) {}
  void add(const std::string& target, std::string name, std::initializer_list<uint8_t> front,
           bytes_view what) {
    for (char& c : name)
      if (!std::isalnum(uint8_t(c))) c = '_';
    const fs::path folder = out_ / target;
    fs::create_directories(folder);
    std::ofstream file(folder / fmt::format("vector_{:03}_{}", ++counts_[target], name),
                       std::ios::binary);
    for (uint8_t b : front) file.put(char(b));
    file.write(reinterpret_cast<const char*>(what.data()), std::streamsize(what.size()));
    good_ = good_ && file.good();
  }
  /// A vector that should be of the form that its target reads, and is or not.
  void expect(bool holds, std::string_view what) {
    if (!holds) fmt::print(stderr, "vector_corpus: {}: it does not read\n", what);
    good_ = good_ && holds;
  }
  bool good() const { return good_; }
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  fs::path out_;
  std::map<std::string, int> counts_;
  bool good_ = true;
};

bytes hex_in(element of, const char* key) {
  std::string_view text;
  return of[key].get(text) == simdjson::SUCCESS ? bytes_of(text) : bytes();
}
std::string text_in(element of, const char* key) {
  std::string_view text;
  return of[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}
uint64_t number_in(element of, const char* key) {
  uint64_t n = 0;
  return of[key].get(n) == simdjson::SUCCESS ? n : ~uint64_t{0};
}
bytes joined(std::initializer_list<bytes_view> parts) {
  bytes out;
  for (bytes_view p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}
bytes be(uint64_t n, size_t size) {
  bytes out(size);
  for (; size > 0; n >>= 8) out[--size] = std::byte(n & 0xff);
  return out;
}
bytes sized(bytes_view b) { return joined({be(b.size(), 2), b}); }

void add_message(corpora& to, const std::string& name, bytes_view message) {
  to.add("bhttp", name, {}, message);
  to.add("gateway", name, {0}, message);
}

void from_bhttp(corpora& to, element root) {
  for (const char* list : {"invalid", "valid", "vectors"}) {
    simdjson::dom::array all;
    if (root[list].get(all) != simdjson::SUCCESS) continue;
    for (element v : all) add_message(to, text_in(v, "name"), hex_in(v, "hex"));
  }
}

/// The example of ohttp_examples.hpp that has the key for it.
size_t example_of(corpora& to, bytes_view enc) {
  for (size_t i = 0; i < std::size(ohttp_examples); ++i)
    if (as_text(bytes_of(ohttp_examples[i].enc)) == as_text(enc)) return i;
  to.expect(false, "an exchange of oblivious HTTP: no example has its key");
  return 0;
}

void add_exchange(corpora& to, const std::string& name, element v) {
  const bytes request = hex_in(v, "encapsulated_request");
  if (request.empty()) return;  // a large one, of which there is a hash
  const size_t i = example_of(to, hex_in(v, "client_ephemeral_public_key"));
  const bytes config = hex_in(v, "key_config");
  for (uint8_t piece : {0, 40}) {
    to.add("ohttp_request", name, {uint8_t(i), piece}, request);
    to.add("ohttp_answer", name, {uint8_t(i), piece}, hex_in(v, "encapsulated_response"));
  }
  to.add("ohttp_keys", name, {}, sized(config));
  to.expect(bool(read_ohttp_keys(sized(config))), "a key configuration");
  add_message(to, name, hex_in(v, "bhttp_request"));
  add_message(to, name, hex_in(v, "bhttp_response"));
}

void from_ohttp(corpora& to, element root) {
  simdjson::dom::array all;
  if (root["vectors"].get(all) != simdjson::SUCCESS) return add_exchange(to, "rfc", root);
  for (element v : all) add_exchange(to, text_in(v, "name"), v);
}

/// A public key as a gateway would publish it, and as a client would send it to each example.
void add_public_key(corpora& to, const std::string& name, uint64_t kem, bytes_view key) {
  const bytes suites = joined({be(4, 2), be(1, 2), be(1, 2)});
  to.add("ohttp_keys", name, {}, sized(joined({be(1, 1), be(kem, 2), key, suites})));
  if (kem != 0x20) return;
  for (size_t i = 0; i < std::size(ohttp_examples); i += 5) {
    const auto& e = ohttp_examples[i];
    const bytes head = joined({be(e.key_id, 1), be(kem, 2), be(1, 2), be(e.aead, 2), key});
    to.add("ohttp_request", name, {uint8_t(i), 0}, joined({head, bytes(40)}));
  }
}

void from_keys(corpora& to, element root) {
  for (const char* list : {"must_refuse", "must_accept"})
    for (element v : root[list])
      add_public_key(to, text_in(v, "comment"), 0x20, hex_in(v, "public"));
}

void from_hpke(corpora& to, element root) {
  for (element v : root["vectors"]) {
    add_public_key(to, text_in(v, "mode_name"), number_in(v, "kem_id"), hex_in(v, "pkRm"));
    for (element sealed : v["encryptions"])
      to.add("seal", text_in(v, "mode_name"), {0},
             joined({hex_in(v, "enc"), hex_in(sealed, "ct")}));
  }
}

void from_challenges(corpora& to, element root) {
  for (const char* list : {"token_vectors", "token_vectors_ts"})
    for (element v : root[list])
      to.add("token", "input", {1}, hex_in(v, "token_authenticator_input"));
  for (const char* list : {"header_vectors", "header_vectors_ts", "complicated_header"})
    for (element v : root[list])
      for (const char* key : {"www_authenticate", "WWW-Authenticate"}) {
        const std::string header = text_in(v, key);
        if (header.empty()) continue;
        to.add("token", list, {0}, as_bytes(header));
        to.expect(bool(read_demands(header)), "a challenge's header");
      }
}

void add_inner(corpora& to, bytes_view token, bytes_view change, bytes_view message) {
  const std::string authorization = "PrivateToken token=" + to_base64url(token);
  const std::string asked = to_base64url(change);
  const bhttp_field sealed[] = {{"content-type", sealed_names::request},
                                {"authorization", authorization},
                                {sealed_names::change_field, asked}};
  const bhttp_field claim[] = {{"content-type", sealed_names::claim}};
  const bytes both = joined({token, change});
  for (const bhttp_request& r : {bhttp_request{"POST", "https", "gateway",
                                               sealed_names::sealed_path, sealed, as_text(message)},
                                 bhttp_request{"POST", "https", "gateway",
                                               sealed_names::change_path, claim, as_text(both)}}) {
    std::pmr::string out;
    to.expect(bool(write_request(r, out)), "a request inside");
    auto read = read_request(out, std::pmr::new_delete_resource());
    to.expect(bool(read), r.path);
    add_message(to, "inner", as_bytes(out));
  }
}

void from_issuance(corpora& to, element root) {
  std::vector<token_request> requests;
  batch_answer answers;
  token_directory published{.issuer_request_uri = "/token-request"};
  for (element v : root["vectors"]) {
    const bytes token = hex_in(v, "token"), request = hex_in(v, "token_request");
    const bytes spki = hex_in(v, "pkS"), response = hex_in(v, "token_response");
    for (const char* key : {"token_challenge", "token_request", "token", "token_response"})
      to.add("token", key, {1}, hex_in(v, key));
    to.add("token", "spki", {3}, spki);
    const std::string header = "PrivateToken token=\"" + to_base64url(token) + "\"";
    to.add("token", "authorization", {0}, as_bytes(header));
    auto asked = token_request::from_bytes(request);
    auto key = read_spki(spki);
    to.expect(asked && key && read_authorization(header), "a token's request, key or header");
    if (!asked || !key) continue;
    requests.push_back(*asked);
    std::ranges::copy(response, answers.emplace_back().emplace().begin());
    if (std::ranges::find(published.keys, *key, &published_key::key) == published.keys.end())
      published.keys.push_back({.key = *key, .not_before_s = 100 + published.keys.size()});
    add_inner(to, token, request, as_bytes("message"));
  }
  to.add("token", "batch", {1}, write_batch_request(requests));
  answers.emplace_back();
  to.add("token", "batch_answer", {1}, write_batch_response(answers));
  const std::string directory = write_directory(published);
  to.add("token", "directory", {2}, as_bytes(directory));
  to.expect(bool(read_directory(directory)), "a directory");
}

/// As the log's target reads a proof with all that belongs to it.
void add_proof(corpora& to, element v, uint8_t kind, std::array<const char*, 4> keys) {
  bytes proof;
  for (element h : v["proof"]) {
    const bytes hash = bytes_of(std::string_view(h));
    proof.insert(proof.end(), hash.begin(), hash.end());
  }
  const uint64_t first = number_in(v, keys[0]), size = number_in(v, keys[1]);
  bytes one = hex_in(v, keys[2]), two = hex_in(v, keys[3]);
  one.resize(32), two.resize(32);
  to.add("log", text_in(v, "desc"), {5, kind},
         joined({be(first, 8), be(size, 8), one, two, proof}));
  if (size < 256 && first < 256)
    to.add("log", text_in(v, "desc"), {4, uint8_t(size), uint8_t(first), 0}, proof);
}

void from_merkle(corpora& to, element root) {
  for (const char* list : {"inclusion", "subtreeinclusion"}) {
    simdjson::dom::array all;
    if (root[list].get(all) != simdjson::SUCCESS) continue;
    const char* size = *list == 's' ? "end" : "treeSize";
    for (element v : all) add_proof(to, v, 0, {"leafIdx", size, "leafHash", "root"});
  }
  for (const char* list : {"consistency", "subtreeconsistency"}) {
    simdjson::dom::array all;
    if (root[list].get(all) != simdjson::SUCCESS) continue;
    const bool sub = *list == 's';
    for (element v : all)
      add_proof(to, v, 1, {sub ? "end" : "size1", sub ? "size" : "size2", "root1", "root2"});
  }
}

void from_varints(corpora& to, element root) {
  for (element v : root["vectors"]) {
    const bytes varint = hex_in(v, "hex");
    to.add("seal", "varint", {4, 2}, joined({varint, bytes(64)}));
    to.add("bhttp", "varint", {}, joined({be(0, 1), varint, bytes(64)}));
    to.add("token", "varint", {1}, joined({varint, bytes(259)}));
  }
}

/// What our client and one of other make have written for each other.
void from_private(corpora& to, element root) {
  const bytes message = hex_in(root["seal"], "message"), token = hex_in(root["seal"], "token");
  to.add("seal", "request", {0}, message);
  const bytes answer = hex_in(root["answer"], "content");
  for (uint8_t piece : {0, 99}) to.add("seal", "answer", {3, piece}, answer);
  to.add("seal", "frames", {4, 50}, bytes_view(answer).subspan(16));
  to.add("seal", "refusal", {6, 0, 0}, hex_in(root["refusal"], "bytes"));
  add_inner(to, token, token_request().to_bytes(), message);
  const bytes whole = hex_in(root["roster"], "bytes");
  to.add("log", "roster", {1}, whole);
  to.expect(bool(roster::from_bytes(whole)), "a roster");
  element log = root["log"];
  bytes bundle;
  uint8_t entries = 0;
  for (element e : log["entries"]) {
    const bytes entry = sized(bytes_of(std::string_view(e)));
    bundle.insert(bundle.end(), entry.begin(), entry.end());
    ++entries;
  }
  to.add("log", "bundle", {2, entries}, bundle);
  to.expect(bool(split_bundle(bundle, entries)), "a bundle");
  for (const char* key : {"note", "key"}) {
    to.add("log", key, {0}, as_bytes(text_in(log, key)));
  }
  to.expect(bool(signed_head::parse(text_in(log, "note"))), "a note");
  for (element w : log["witnesses"]) to.add("log", "witness", {0}, as_bytes(std::string_view(w)));
}

struct source {
  const char* file;
  void (*take)(corpora&, element);
};
constexpr source ours[] = {{"bhttp_edge.json", from_bhttp},
                           {"private_vectors.json", from_private},
                           {"private_vectors_js.json", from_private}};
constexpr source published[] = {{"bhttp-rfc9292.json", from_bhttp},
                                {"ohttp-rfc9458.json", from_ohttp},
                                {"ohttp-chunked.json", from_ohttp},
                                {"ohttp-extra.json", from_ohttp},
                                {"hpke-rfc9180.json", from_hpke},
                                {"x25519-edge.json", from_keys},
                                {"privacypass-auth-rfc9577.json", from_challenges},
                                {"privacypass-type2-rfc9578.json", from_issuance},
                                {"merkle-rfc6962.json", from_merkle},
                                {"merkle-subtree.json", from_merkle},
                                {"quic-varint-rfc9000.json", from_varints}};

void take(corpora& to, const fs::path& file, const source& from) try {
  simdjson::dom::parser parser;
  from.take(to, parser.load(file.string()));
} catch (const simdjson::simdjson_error& why) {
  to.expect(false, fmt::format("{}: {}", file.string(), why.what()));
}

int write_all(const fs::path& data, const fs::path& vectors, const fs::path& out) {
  corpora to(out);
  for (const source& s : ours) take(to, data / s.file, s);
  const fs::path folder = vectors / "protocol";
  const bool there = fs::exists(folder);
  if (!there)
    fmt::print("{}: not there; only the vectors of tests/data are written\n", folder.string());
  else
    for (const source& s : published) take(to, folder / s.file, s);
  for (const auto& [target, count] : to.counts()) fmt::print("{} {}\n", target, count);
  return to.good() && (there || !std::getenv("CI")) ? 0 : 1;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: vector_corpus DATA VECTORS OUT\n");
    return 2;
  }
  const char* elsewhere = std::getenv("LETHE_VECTORS");
  return lethe::write_all(argv[1], elsewhere ? elsewhere : argv[2], argv[3]);
}
