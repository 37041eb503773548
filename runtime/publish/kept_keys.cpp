#include "runtime/publish/kept_keys.hpp"

#include "runtime/crypto/random.hpp"
#include "runtime/store/key_file.hpp"
#include "runtime/store/store_limits.hpp"

namespace lethe {

namespace {

constexpr size_t signing_bytes = 32;

}  // namespace

result<note_signer> keep_note_key(const std::filesystem::path& path, const std::string& name,
                                  note_algorithm algorithm) {
  auto text = keep_key(path, {1, limits::key_file_bytes_max}, [&]() -> result<secret_bytes> {
    auto made = make_private_note_key(name, algorithm);
    if (!made) return made.why();
    return secret_bytes(as_bytes(made->text));
  });
  if (!text) return text.why();
  auto signer = note_signer::parse(as_text(text->view()));
  if (!signer) return fail("{}: {}", path.string(), signer.why().text);
  if (signer->key().name() != name)
    return fail(
        "{}: is the key of {}, not of {}; under another name it would be another log or "
        "witness: give it another folder",
        path.string(), signer->key().name(), name);
  return signer;
}

result<signing_key> keep_signing_key(const std::filesystem::path& path) {
  auto seed = keep_key(path, {signing_bytes, signing_bytes}, []() -> result<secret_bytes> {
    secret_bytes made(signing_bytes);
    fill_random(made.bytes());
    return made;
  });
  if (!seed) return seed.why();
  return signing_key::from_private(seed->view());
}

}  // namespace lethe
