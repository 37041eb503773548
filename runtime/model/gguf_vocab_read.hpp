#pragma once

#include "runtime/base/result.hpp"
#include "runtime/model/gguf.hpp"
#include "runtime/tokenizer/gguf_vocab.hpp"

namespace lethe {

/// The file's vocabulary; its texts stay valid as long as the file is open.
result<gguf_vocab> read_vocab(const gguf_file& file);

}  // namespace lethe
