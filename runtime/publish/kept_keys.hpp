#pragma once

#include <filesystem>

#include "runtime/log/note_key.hpp"

/// Keys that lie in files of their owner alone, and are made where they are missing.
namespace lethe {

/// A note's private key as text, in a name's own form.
result<note_signer> keep_note_key(const std::filesystem::path& path, const std::string& name,
                                  note_algorithm algorithm);
/// An Ed25519 key, 32 bytes.
result<signing_key> keep_signing_key(const std::filesystem::path& path);

}  // namespace lethe
