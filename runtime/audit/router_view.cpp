#include "runtime/audit/router_view.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/audit/small_client.hpp"
#include "runtime/base/varint.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/sealed_message.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/log/draw.hpp"
#include "runtime/token/base64url.hpp"
#include "runtime/token/token_client.hpp"

namespace lethe::audit {

namespace {

constexpr double sigmas_max = 7;  // of some 30,000 bits none gets there in a million audits
constexpr size_t forms_max = 8;   // buckets that a measurement may use

/// Takes what is fresh out of a message, in place.
class taking_apart {
 public:
  explicit taking_apart(const std::string& inner) : view_{.fixed = inner, .fresh = {}} {}

  /// Of bytes that stand as they are, by where they are in the message.
  void take(size_t at, size_t bytes) {
    view_.fresh += view_.fixed.substr(at, bytes);
    std::fill_n(view_.fixed.begin() + long(at), bytes, '\0');
  }
  /// Of bytes in base64url: all but the ranges in `kept`.
  bool take_coded(bytes_view bytes, bytes_view with_zeros) {
    const std::string coded = to_base64url(bytes), bare = to_base64url(with_zeros);
    const size_t at = view_.fixed.find(coded);
    if (at == std::string::npos) return false;
    view_.fresh += as_text(bytes);
    view_.fixed.replace(at, coded.size(), bare);
    return true;
  }
  router_view done(const std::string& outer) && {
    view_.fixed = outer + '\n' + view_.fixed;
    return std::move(view_);
  }

 private:
  router_view view_;
};

/// Everything of a sealed message but its head, its count and the lengths of its chunks.
result<void> take_sealed(taking_apart& to, size_t at, bytes_view content) {
  auto message = sealed_message::parse(content);
  if (!message) return message.why();
  auto where = [&](bytes_view part) { return at + size_t(part.data() - content.data()); };
  for (const seal_entry& e : message->entries)
    to.take(where(e.enc) - e.node_id.size(), e.node_id.size() + e.enc.size() + e.wrapped.size());
  for (std::string_view left = as_text(message->chunks);;) {
    const auto length = take_varint(left);
    if (!length || *length > left.size()) return fail("router view: no chunks");
    const size_t bytes = *length ? size_t(*length) : left.size();
    to.take(where(as_bytes(left)), bytes);
    left.remove_prefix(bytes);
    if (*length == 0) return {};
  }
}

using views = std::vector<router_view>;
using forms = std::map<std::string, std::vector<const std::string*>>;  // fixed: what is fresh

forms forms_of(std::span<const router_view> of) {
  forms f;
  for (const auto& v : of) f[v.fixed].push_back(&v.fresh);
  return f;
}

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) out += c >= ' ' && c <= '~' ? c : '.';
  return out;
}

/// Where a form that the other doesn't have begins to differ from the one that is most like it.
std::string unlike(const std::string& form, const forms& others) {
  size_t same = 0;
  for (const auto& [other, fresh] : others)
    same = std::max(same, size_t(std::ranges::mismatch(form, other).in1 - form.begin()));
  return fmt::format("{} bytes, other at byte {}: \"{}\"", form.size(), same,
                     printable(std::string_view(form).substr(same > 8 ? same - 8 : 0, 32)));
}

/// The bit that is set most unevenly, in standard deviations.
std::string uneven_bit(const std::vector<const std::string*>& a,
                       const std::vector<const std::string*>& b) {
  auto set = [](const auto& of, size_t bit) {
    return double(std::ranges::count_if(
        of, [&](const std::string* s) { return (*s)[bit / 8] >> (bit % 8) & 1; }));
  };
  const double na = double(a.size()), nb = double(b.size());
  for (const auto* list : {&a, &b})
    for (const auto* s : *list)
      if (s->size() != a[0]->size()) return "fresh parts of another length";
  for (size_t bit = 0; bit < a[0]->size() * 8; ++bit) {
    const double sa = set(a, bit), sb = set(b, bit), p = (sa + sb) / (na + nb);
    const double spread = std::sqrt(p * (1 - p) * (1 / na + 1 / nb));
    if (spread > 0 && std::abs(sa / na - sb / nb) > sigmas_max * spread)
      return fmt::format("bit {} of byte {} of what is fresh: set in {:.2f} and {:.2f}", bit % 8,
                         bit / 8, sa / na, sb / nb);
  }
  return {};
}

/// One user's requests: some in each bucket, of lengths that differ.
result<views> requests_of(small_cluster& cluster, uint32_t number, bool wordy, uint32_t before) {
  auto client = small_client::start(cluster, 0, cluster.sell(2 * number + before));
  if (!client) return client.why();
  auto ask = [&](size_t words) -> result<void> {
    const auto end = (*client)->ask(fmt::format(R"({{"said":"{}"}})", std::string(words, 'w')));
    return end ? result<void>() : end.why;
  };
  for (uint32_t i = 0; i < before; ++i)
    if (auto ok = ask(i); !ok) return ok.why();
  cluster.take_routed();
  for (uint32_t i = 0; i < number; ++i)
    for (size_t words : {wordy ? 700 - i : i, wordy ? 3500 - i : 1500 + i})
      if (auto ok = ask(words); !ok) return ok.why();
  views out;
  for (const routed& r : cluster.take_routed()) {
    auto v = view_of(r);
    if (!v) return v.why();
    out.push_back(*std::move(v));
  }
  return out;
}

/// As a client sends it, but for one thing, if any.
struct oddity {
  bool padded = true;
  std::string header;  // a field of its own
};
result<views> odd_request(small_cluster& cluster, const oddity& odd) {
  auto client = small_client::start(cluster, 0, {});
  if (!client) return client.why();
  auto state = (*client)->state();
  if (!state) return state.end.why;
  const cluster_state& s = **state;
  std::pmr::string plain;
  const bhttp_field json{"content-type", "application/json"};
  auto ok = write_request({.authority = "lethe",
                           .path = "/v1/chat/completions",
                           .fields = {&json, 1},
                           .content = R"({"said":"w"})"},
                          plain);
  if (!ok) return ok.why();
  if (odd.padded) plain.resize(s.policy.request_buckets[0], '\0');
  const private_token token = cluster.sell(1)[0];
  const node_public node = s.nodes.leaves[draw_nodes(s.nodes, 1)[0]].node;
  auto sealed =
      seal_request(as_bytes(plain), {&node, 1}, s.nodes.epoch, token.hash(), s.policy.chunk_bytes);
  auto key = s.token_key_at(cluster.now_s);
  if (!sealed || !key) return (key ? sealed.why() : key.why());
  const secret_bytes shown = write_authorization(token);
  const auto pending = pending_token::make(*key, s.challenge.digest());
  const std::string change = to_base64url(pending->request().to_bytes());
  std::vector<bhttp_field> fields = {{"content-type", sealed_names::request},
                                     {"authorization", shown.text()},
                                     {sealed_names::change_field, change}};
  if (!odd.header.empty()) fields.push_back({odd.header, "of this user alone"});
  auto answer = (*client)->channel().ask_whole(
      s.gateway_key, {"POST", sealed_names::sealed_path, fields, as_text(sealed->message)},
      1 << 20);
  if (!answer) return answer.end.why;
  views out;
  for (const routed& r : cluster.take_routed())
    if (auto v = view_of(r)) out.push_back(*std::move(v));
  return out;
}

/// Without its oddity it must be one of the usual forms, or it is found for another reason.
control found_in(const char* without, small_cluster& cluster, const oddity& odd,
                 const views& usual) {
  const auto plain = odd_request(cluster, {}), seen = odd_request(cluster, odd);
  if (!plain || !seen) return {without, (plain ? seen.why() : plain.why()).text, false};
  const forms kinds = forms_of(usual);
  if (plain->empty() || seen->empty() || !kinds.contains(plain->front().fixed))
    return {without, "not made as the client makes requests", false};
  const bool found = !kinds.contains(seen->front().fixed);
  return {without, found ? unlike(seen->front().fixed, kinds) : "nothing", found};
}

/// A client that marks its nonces, and keeps to their form.
views marked(views of, char bit) {
  for (auto& v : of) v.fresh[0] = char((v.fresh[0] & ~1) | bit);
  return of;
}

}  // namespace

result<router_view> view_of(const routed& seen) {
  std::pmr::monotonic_buffer_resource memory;
  auto inner = read_request(seen.inner, &memory);
  if (!inner) return inner.why();
  const auto wants = read_inner(*inner);
  auto* s = std::get_if<inner_sealed>(&wants);
  const std::string_view content = inner->content();
  if (!s || !inner->joined.empty()) return fail("router view: no sealed request of a client's");
  taking_apart apart(seen.inner);
  // First what stands where it is: the coded parts keep their length.
  auto ok = take_sealed(apart, size_t(content.data() - seen.inner.data()), as_bytes(content));
  if (!ok) return ok.why();
  private_token bare = s->token;
  bare.nonce = {};
  bare.signature = {};
  token_request empty = s->change;
  empty.blinded = {};
  if (!apart.take_coded(s->token.to_bytes(), bare.to_bytes()) ||
      !apart.take_coded(s->change.to_bytes(), empty.to_bytes()))
    return fail("router view: token or change are not where they belong");
  return std::move(apart).done(seen.outer);
}

std::string difference(std::span<const router_view> a, std::span<const router_view> b) {
  const forms fa = forms_of(a), fb = forms_of(b);
  for (const auto& [of, others] : {std::pair(&fa, &fb), std::pair(&fb, &fa)})
    for (const auto& [form, fresh] : *of)
      if (!others->contains(form)) return unlike(form, *others);
  if (fa.size() > forms_max) return fmt::format("{} forms of requests", fa.size());
  for (const auto& [form, fresh] : fa)
    if (auto bit = uneven_bit(fresh, fb.at(form)); !bit.empty()) return bit;
  return {};
}

finding measure_router_view(const router_settings& settings) {
  finding out{.promise = "T", .attacks = "A4"};
  out.what = "gateway and scheduler see the same of two users, but for fresh randomness and bucket";
  auto cluster = small_cluster::start({});
  if (!cluster) return out.note = cluster.why().text, out;
  (*cluster)->keeps_routed = true;
  const auto a = requests_of(**cluster, settings.requests, false, 0);
  const auto b = requests_of(**cluster, settings.requests, true, 5);
  if (!a || !b) return out.note = (a ? b.why() : a.why()).text, out;
  const std::string seen = difference(*a, *b);
  const forms kinds = forms_of(*a);
  std::string sizes;
  for (const auto& [form, fresh] : kinds)
    sizes += fmt::format("{}{} bytes ({} of them fresh)", sizes.empty() ? "" : " and ", form.size(),
                         fresh[0]->size());
  out.measured = fmt::format("{} requests each, of {}: {}", a->size(), sizes,
                             seen.empty() ? "no difference" : seen);
  out.bound = fmt::format(
      "every other byte equal; no fresh bit more often set for one, {} standard "
      "deviations",
      sigmas_max);
  out.said = seen.empty() ? verdict::held : verdict::broken;
  const std::string bit = difference(marked(*b, 1), marked(*a, 0));
  out.controls = {
      found_in("one form of requests: a header of this user", **cluster, {.header = "x-user"}, *a),
      found_in("padding", **cluster, {.padded = false}, *a),
      {"fresh nonces: one bit of them is the user's", bit, !bit.empty()}};
  return out;
}

}  // namespace lethe::audit
