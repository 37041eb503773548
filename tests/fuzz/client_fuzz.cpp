#include <cstddef>
#include <cstdint>

#include "runtime/client/client_limits.hpp"
#include "runtime/client/proxy_answer.hpp"
#include "runtime/client/trust_file.hpp"
#include "runtime/client/view_memory.hpp"
#include "runtime/client/wallet_change.hpp"

using namespace lethe;

/// Files that a client keeps, of any bytes; and bodies of applications. What is read is written
/// again as it was.
namespace {

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

bool same(bytes_view a, bytes_view b) { return as_text(a) == as_text(b); }

void any_trust(std::string_view in) {
  auto read = trust_file::parse(in, "/trust.toml");
  if (!read) return;
  expect(!read->relays.empty() && !read->evidence.empty());
  expect(read->log.quorum <= read->log.witnesses.size());
  expect(read->policy.candidates_max >= 1 && read->policy.redraws_max <= 16);
}

void any_wallet(bytes_view in) {
  constexpr std::array<std::byte, 32> key{};
  if (auto opened = wallet_content::open(in, key))
    expect(*wallet_content::from_bytes(opened->to_bytes().view()) == *opened);
  auto read = wallet_content::from_bytes(in);
  if (!read) return;
  expect(read->tokens.size() <= limits::wallet_tokens_max);
  expect(read->spends.size() <= limits::wallet_spends_max);
  expect(same(read->to_bytes().view(), in));
  auto again = wallet_content::open(read->seal(key), key);
  expect(again && *again == *read);
}

void any_changes(bytes_view in) {
  auto read = changes_from_bytes(in);
  if (!read) return;
  expect(same(to_bytes(*read).view(), in));
  wallet_content empty;
  for (const auto& c : *read) expect(!apply_change(c, empty));
}

void any_memory(bytes_view in) {
  auto read = view_memory::from_bytes(in);
  if (read) expect(same(read->to_bytes(), in));
}

void any_body(std::string_view in) {
  auto* heap = std::pmr::get_default_resource();
  auto out = without_labels(in, heap);
  if (!out) return;
  auto again = without_labels(*out, heap);
  expect(again && *again == *out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  bytes_view in(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      any_trust(as_text(in));
      break;
    case 1:
      any_wallet(in);
      break;
    case 2:
      any_memory(in);
      break;
    case 3:
      any_body(as_text(in));
      break;
    case 4:
      any_changes(in);
  }
  return 0;
}
