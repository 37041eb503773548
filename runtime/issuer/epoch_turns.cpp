#include "runtime/issuer/epoch_turns.hpp"

#include <fstream>

#include "runtime/base/durable_file.hpp"

namespace lethe {

namespace {

constexpr uint64_t buyers_step = 10;
constexpr std::string_view request_uri = "/token-request";

}  // namespace

epoch_turns::epoch_turns(std::filesystem::path folder, uint32_t epoch_s, account_store& accounts,
                         change_store& changes)
    : folder_(folder), shelf_(std::move(folder), epoch_s), accounts_(accounts), changes_(changes) {}

result<void> epoch_turns::turn(uint64_t now_s) {
  const uint32_t epoch = shelf_.epoch_at(now_s);
  if (turned_to_ == epoch) return {};
  auto keys = shelf_.live_in(epoch);
  if (!keys) return keys.why();
  keys_.replace(*std::move(keys));
  if (auto shown = show(epoch, now_s); !shown) return shown;
  if (auto swept = shelf_.sweep(); !swept) return swept;
  auto old = shelf_.before(epoch > 0 ? epoch - 1 : 0);
  if (!old) return old.why();
  for (uint32_t e : *old)
    if (auto gone = retire(e); !gone) return gone;
  turned_to_ = epoch;
  return {};
}

/// Whoever bought under the key before has done so: nobody holds it for a purchase any more.
result<void> epoch_turns::show(uint32_t epoch, uint64_t now_s) {
  auto published = keys_.hold()->directory(std::string(request_uri), now_s);
  for (auto& k : published.keys) {
    if (epoch == 0 || k.not_before_s != shelf_.begin_of(epoch - 1)) continue;
    auto count = buyers(epoch - 1);
    if (!count) return count.why();
    k.buyers = *count;
  }
  auto text = std::make_shared<const std::string>(write_directory(published));
  std::lock_guard lock(mutex_);
  directory_ = std::move(text);
  return {};
}

result<uint64_t> epoch_turns::buyers(uint32_t epoch) {
  auto count = accounts_.buyers(epoch);
  if (!count) return count.why();
  return *count / buyers_step * buyers_step;
}

std::shared_ptr<const std::string> epoch_turns::directory() const {
  std::lock_guard lock(mutex_);
  return directory_;
}

/// The key goes last: as long as it is there, the rest is done again after a crash.
result<void> epoch_turns::retire(uint32_t epoch) {
  auto id = shelf_.id_of(epoch);
  if (!id) return id.why();
  if (auto ok = log_buyers(epoch); !ok) return ok;
  if (auto ok = changes_.drop_key(*id); !ok) return ok;
  if (auto ok = accounts_.forget_before(epoch + 1); !ok) return ok;
  return shelf_.destroy(epoch);
}

result<void> epoch_turns::log_buyers(uint32_t epoch) {
  const auto path = folder_ / "buyers";
  const std::string begin = fmt::format("{} ", epoch);
  std::string lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line); lines += line + "\n")
    if (line.starts_with(begin)) return {};
  auto count = buyers(epoch);
  if (!count) return count.why();
  lines += fmt::format("{}{}\n", begin, *count);
  return write_durable(path, as_bytes(lines), 0600);
}

}  // namespace lethe
