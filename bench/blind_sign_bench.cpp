// What an issuer signs in a second, alone and in batches, against nothing but private operations of
// RSA-2048 through EVP. Both take turns, so that what else the machine does meets both. The answers
// are checked first: clients make tokens of them. Prints one line of JSON per measurement.

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>

#include "runtime/token/token_client.hpp"
#include "runtime/token/token_issuer.hpp"

namespace lethe {
namespace {

using steady = std::chrono::steady_clock;

constexpr int rounds = 31;
const hash32 challenge_digest = sha256({as_bytes("what the tokens are for")});

double seconds_of(const std::function<void()>& call) {
  auto begin = steady::now();
  call();
  return std::chrono::duration<double>(steady::now() - begin).count();
}

/// What OpenSSL itself does: a key, a number, its private power.
class plain_signer {
 public:
  explicit plain_signer(const issuer_key& key) {
    secret_bytes pem = key.pem();
    openssl::bio in(BIO_new_mem_buf(pem.text().data(), int(pem.size())));
    key_.reset(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
    context_.reset(EVP_PKEY_CTX_new_from_pkey(nullptr, key_.get(), nullptr));
    check(context_ && EVP_PKEY_decrypt_init(context_.get()) == 1 &&
          EVP_PKEY_CTX_set_rsa_padding(context_.get(), RSA_NO_PADDING) == 1);
  }
  token_signature sign(const token_signature& number) {
    token_signature out;
    size_t size = out.size();
    check(EVP_PKEY_decrypt(context_.get(), openssl::uchars(out.data()), &size,
                           openssl::uchars(number.data()), number.size()) == 1);
    return out;
  }

 private:
  openssl::key key_;
  openssl::key_context context_;
};

/// Tokens come of the issuer's answers, and they are what the plain key says.
void check_answers(const token_issuer& issuer, plain_signer& plain, const token_purchase& purchase,
                   const std::vector<token_request>& requests) {
  const token_key& key = *issuer.current(0);
  auto whole = issuer.answer_batch(purchase.request(), 0);
  auto bought = purchase.finish(key, whole.body);
  check(whole.status == 200 && bought && bought->tokens.size() == requests.size());
  for (const auto& t : bought->tokens) check(bool(verify_token(t, key, challenge_digest)));
  auto answers = read_batch_response(whole.body);
  for (size_t i = 0; i < requests.size(); ++i) {
    check((*answers)[i] == plain.sign(requests[i].blinded));
    check(issuer.answer(requests[i].to_bytes(), 0).body ==
          std::vector((*answers)[i]->begin(), (*answers)[i]->end()));
  }
}

/// Both in turns, each signing as many: the median of the rounds' ratios.
void measure(const char* what, size_t count, const std::function<void()>& ours,
             const std::function<void()>& plain) {
  std::vector<double> per_second, plain_per_second, ratios;
  ours(), plain();
  for (int r = 0; r < rounds; ++r) {
    const bool first = r % 2 == 0;
    double a = seconds_of(first ? ours : plain), b = seconds_of(first ? plain : ours);
    if (!first) std::swap(a, b);
    per_second.push_back(double(count) / a);
    plain_per_second.push_back(double(count) / b);
    ratios.push_back(b / a);
  }
  auto at = [](std::vector<double>& v, int percent) {
    std::ranges::sort(v);
    return v[v.size() * size_t(percent) / 100];
  };
  fmt::print(
      "{{\"what\":\"{}\",\"signatures\":{},\"per_second\":{:.0f},\"plain_per_second\":{:.0f},"
      "\"ratio\":{:.3f},\"ratio_p10\":{:.3f},\"ratio_p90\":{:.3f}}}\n",
      what, count, at(per_second, 50), at(plain_per_second, 50), at(ratios, 50), at(ratios, 10),
      at(ratios, 90));
}

void run(size_t count) {
  token_issuer issuer;
  issuer_key made = issuer_key::make();
  plain_signer plain(made);
  check(bool(issuer.add(std::move(made), 0)));
  auto purchase = token_purchase::make(*issuer.current(0), challenge_digest, count);
  check(bool(purchase));
  const std::vector<std::byte> batch = purchase->request();
  const auto requests = *read_batch_request(batch);
  check_answers(issuer, plain, *purchase, requests);
  auto all_plain = [&] {
    for (const auto& r : requests) plain.sign(r.blinded);
  };
  auto each = [&] {
    for (const auto& r : requests) check(issuer.answer(r.to_bytes(), 0).status == 200);
  };
  measure("single", count, each, all_plain);
  measure(
      "batch", count, [&] { check(issuer.answer_batch(batch, 0).status == 200); }, all_plain);
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) {
  CLI::App app{"What an issuer signs in a second."};
  size_t count = 64;
  app.add_option("--batch", count, "requests of a batch")->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  lethe::run(count);
  return 0;
}
