#include "runtime/model/convert.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

#include "runtime/base/whole_file.hpp"
#include "runtime/model/checkpoint.hpp"
#include "runtime/model/convert_shape.hpp"
#include "runtime/model/convert_vocab.hpp"
#include "runtime/model/gguf_shape.hpp"
#include "runtime/model/gguf_write.hpp"
#include "runtime/model/quantize.hpp"
#include "runtime/model/tensor_names.hpp"

namespace lethe {

namespace fs = std::filesystem;

namespace {

constexpr size_t slice_bytes_max = size_t{16} << 20;

/// One tensor on its way: from the folder's order and type to the file's.
struct passage {
  const raw_tensor* from;
  std::string name;
  dtype to;
  uint32_t head_dim = 0;  // of q and k whose rows are to be interleaved, else 0

  uint64_t row_bytes() const { return uint64_t{from->cols} / block_elements(to) * block_bytes(to); }
  uint64_t from_row_bytes() const {
    return uint64_t{from->cols} / block_elements(from->type) * block_bytes(from->type);
  }
};

/// The reverse of unpermuted_row: which row of the model the file holds at `row`.
uint32_t permuted_row(uint32_t row, uint32_t head_dim) {
  uint32_t first = row - row % head_dim, r = row % head_dim;
  return first + r / 2 + (r % 2 ? head_dim / 2 : 0);
}

void convert_row(const passage& p, uint32_t row, float* floats, std::byte* out) {
  // Of a vector the elements are permuted, not the rows.
  uint32_t source = p.head_dim && p.from->rows > 1 ? permuted_row(row, p.head_dim) : row;
  const std::byte* at = p.from->data.data() + source * p.from_row_bytes();
  dequantize_row(p.from->type, at, floats, p.from->cols);
  if (p.head_dim && p.from->rows == 1) {
    std::vector<float> plain(floats, floats + p.from->cols);
    for (uint32_t i = 0; i < p.from->cols; ++i) floats[i] = plain[permuted_row(i, p.head_dim)];
  }
  quantize_row(p.to, floats, p.from->cols, out);
}

/// Rows [begin, end) to `out`, shared out among threads.
void convert_rows(const passage& p, uint32_t begin, uint32_t end, uint32_t threads,
                  std::byte* out) {
  uint32_t rows = end - begin;
  threads = std::clamp(threads, 1u, rows);
  auto work = [&p, begin, rows, threads, out](uint32_t part) {
    std::vector<float> floats(p.from->cols);
    uint32_t last = uint32_t(uint64_t{rows} * (part + 1) / threads);
    for (auto r = uint32_t(uint64_t{rows} * part / threads); r < last; ++r)
      convert_row(p, begin + r, floats.data(), out + r * p.row_bytes());
  };
  std::vector<std::thread> others;
  uint32_t part = 1;
  try {
    for (; part < threads; ++part) others.emplace_back(work, part);
  } catch (const std::system_error&) {
    // No more threads to be had: the rest is done here.
  }
  work(0);
  for (; part < threads; ++part) work(part);
  for (auto& t : others) t.join();
}

result<void> write_tensor(const passage& p, const convert_options& options, uint64_t all,
                          whole_file& file) {
  uint64_t per_row = p.row_bytes() + p.from->cols * sizeof(float);
  auto slice = uint32_t(std::clamp<uint64_t>(slice_bytes_max / per_row, 1, p.from->rows));
  std::vector<std::byte> out(slice * p.row_bytes());
  for (uint32_t begin = 0; begin < p.from->rows; begin += slice) {
    uint32_t end = std::min(p.from->rows, begin + slice);
    convert_rows(p, begin, end, options.threads, out.data());
    if (auto ok = file.write(bytes_view(out).first((end - begin) * p.row_bytes())); !ok) return ok;
    if (options.progress) options.progress(file.written(), all);
  }
  return file.pad(gguf_alignment);
}

bool turns(std::string_view name) {
  return name.ends_with(".q") || name.ends_with(".k") || name.ends_with(".q_bias") ||
         name.ends_with(".k_bias");
}

passage passage_of(const raw_tensor& t, const model_shape& shape, std::string_view architecture,
                   dtype wanted, std::vector<std::string>& kept) {
  passage p{.from = &t, .name = name_in_gguf(t.name), .to = wanted};
  if (has_interleaved_rope(architecture) && turns(t.name)) p.head_dim = shape.head_dim;
  bool vector = t.rows == 1 && t.name != "embed" && t.name != "head";
  if (vector) {
    p.to = dtype::f32;
  } else if (t.cols % block_elements(wanted)) {
    p.to = dtype::f16;
    kept.push_back(p.name);
  }
  return p;
}

/// What GGUF cannot say of a model that we otherwise run.
result<void> check_words(const model_shape& s, const fs::path& folder, bool interleaved) {
  if (s.rope.scaling == rope_scaling::yarn && !s.rope.truncate)
    return fail("{}: rope_scaling.truncate false cannot be written to GGUF", folder.string());
  if (interleaved && s.rope.rotary != s.head_dim)
    return fail("{}: partial_rotary_factor cannot be written to a llama GGUF", folder.string());
  return {};
}

/// The whole way of one model.
class conversion {
 public:
  conversion(const checkpoint& model, const convert_options& options)
      : model_(model), options_(options) {
    architecture_ = model.shape().family == "mistral" ? "llama" : model.shape().family;
  }

  result<convert_report> run(const fs::path& folder, const fs::path& to) {
    if (auto ok = check_words(model_.shape(), folder, has_interleaved_rope(architecture_)); !ok)
      return ok.why();
    add_metadata(folder);
    if (auto ok = add_vocab(folder, model_.shape(), model_.defaults(), header_); !ok)
      return ok.why();
    list_tensors();
    return write(to);
  }

 private:
  void add_metadata(const fs::path& folder) {
    auto name = fs::absolute(folder).lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    add_general(architecture_, name.filename().string(), options_.type, header_);
    add_shape(model_.shape(), architecture_, header_);
  }

  void list_tensors() {
    factors_ = rope_factors(model_.shape().rope);
    if (!factors_.empty())
      header_.add_tensor("rope_freqs.weight", dtype::f32, 1, uint32_t(factors_.size()));
    for (const auto& t : model_.tensors()) {
      passages_.push_back(
          passage_of(t, model_.shape(), architecture_, options_.type, report_.kept));
      const passage& p = passages_.back();
      header_.add_tensor(p.name, p.to, t.rows, t.cols);
    }
  }

  result<convert_report> write(const fs::path& to) {
    auto file = whole_file::create(to);
    if (!file) return file.why();
    std::string begin = header_.bytes();
    uint64_t all = begin.size() + header_.data_bytes();
    if (auto ok = file->write(as_bytes(begin)); !ok) return ok.why();
    if (!factors_.empty()) {
      if (auto ok = file->write(std::as_bytes(std::span(factors_))); !ok) return ok.why();
      if (auto ok = file->pad(gguf_alignment); !ok) return ok.why();
    }
    for (const auto& p : passages_) {
      if (auto ok = write_tensor(p, options_, all, *file); !ok) return ok.why();
      model_.release(*p.from);
    }
    check(file->written() == all);
    if (auto ok = file->finish(); !ok) return ok.why();
    report_.bytes = all;
    return std::move(report_);
  }

  const checkpoint& model_;
  const convert_options& options_;
  std::string architecture_;
  gguf_header header_;
  std::vector<float> factors_;
  std::vector<passage> passages_;
  convert_report report_;
};

}  // namespace

result<convert_report> convert_to_gguf(const fs::path& folder, const fs::path& to,
                                       const convert_options& options) {
  auto model = checkpoint::open(folder);
  if (!model) return model.why();
  if (model->is_gguf())
    return fail("{}: is a GGUF file already; convert reads Hugging Face folders", folder.string());
  return conversion(*model, options).run(folder, to);
}

}  // namespace lethe
