#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <cstdio>
#include <memory_resource>

#include "actors/cli/commands.hpp"
#include "actors/cli/read_input.hpp"
#include "runtime/json/json_text.hpp"
#include "runtime/serve/open_model.hpp"

namespace lethe {

namespace {

struct tokenize_flags {
  std::string model, input = "-";
  bool json = false, decode = false, special = false, plain = false;
};

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

result<void> encode_one(const tokenizer& t, const tokenize_flags& flags, std::string_view text,
                        json_text& out) {
  encode_options options{.add_special = flags.special, .parse_special = !flags.plain};
  auto ids = t.encode(text, options, std::pmr::get_default_resource());
  if (!ids) return ids.why();
  out.ids(*ids);
  return {};
}

result<std::vector<uint32_t>> ids_from_json(simdjson::dom::element list) {
  simdjson::dom::array items;
  if (list.get_array().get(items)) return fail("input: not a list of token ids");
  std::vector<uint32_t> ids;
  for (auto item : items) {
    uint64_t id = 0;
    if (item.get_uint64().get(id) || id > UINT32_MAX)
      return fail("input: item {} is not a token id", ids.size());
    ids.push_back(uint32_t(id));
  }
  return ids;
}

result<std::vector<uint32_t>> ids_from_words(std::string_view text) {
  std::vector<uint32_t> ids;
  size_t at = 0;
  while ((at = text.find_first_not_of(" ,\t\r\n[]", at)) != text.npos) {
    size_t end = std::min(text.find_first_of(" ,\t\r\n[]", at), text.size());
    uint32_t id = 0;
    auto [rest, wrong] = std::from_chars(text.data() + at, text.data() + end, id);
    if (wrong != std::errc() || rest != text.data() + end)
      return fail("input: at byte {}: not a token id; ids are numbers apart by spaces or commas",
                  at);
    ids.push_back(id);
    at = end;
  }
  return ids;
}

result<void> check_ids(const tokenizer& t, const std::vector<uint32_t>& ids) {
  for (uint32_t id : ids)
    if (id >= t.vocab_size())
      return fail("input: token id {} is out of range; the vocabulary has {}", id, t.vocab_size());
  return {};
}

result<void> decode_one(const tokenizer& t, const tokenize_flags& flags,
                        const std::vector<uint32_t>& ids, std::pmr::string& out) {
  if (auto in_range = check_ids(t, ids); !in_range) return in_range.why();
  out = t.decode(ids, !flags.special, std::pmr::get_default_resource());
  return {};
}

result<void> whole(const tokenizer& t, const tokenize_flags& flags, const std::string& input) {
  if (flags.decode) {
    auto ids = ids_from_words(input);
    if (!ids) return ids.why();
    std::pmr::string text;
    if (auto made = decode_one(t, flags, *ids, text); !made) return made.why();
    print(text);
    return {};
  }
  json_text out(std::pmr::get_default_resource());
  if (auto made = encode_one(t, flags, input, out); !made) return made.why();
  print(out.str());
  print("\n");
  return {};
}

result<void> one_item(const tokenizer& t, const tokenize_flags& flags, simdjson::dom::element item,
                      json_text& out) {
  if (!flags.decode) {
    std::string_view text;
    if (item.get_string().get(text)) return fail("input: not a string");
    return encode_one(t, flags, text, out);
  }
  auto ids = ids_from_json(item);
  if (!ids) return ids.why();
  std::pmr::string text;
  if (auto made = decode_one(t, flags, *ids, text); !made) return made.why();
  out.text(text);
  return {};
}

result<void> each(const tokenizer& t, const tokenize_flags& flags, const std::string& input) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (auto wrong = parser.parse(input).get(root))
    return fail("input: not JSON: {}", simdjson::error_message(wrong));
  json_text out(std::pmr::get_default_resource());
  simdjson::dom::array items;
  bool many = !root.get_array().get(items) &&
              !(flags.decode && items.size() > 0 && !items.at(0).is_array());
  if (!many) {
    if (auto made = one_item(t, flags, root, out); !made) return made.why();
  } else {
    out.open('[');
    for (auto item : items)
      if (auto made = one_item(t, flags, item, out); !made) return made.why();
    out.close(']');
  }
  print(out.str());
  print("\n");
  return {};
}

int run(const tokenize_flags& flags) {
  auto t = open_tokenizer(flags.model);
  if (!t) return refuse(t.why().text);
  auto input = read_input(flags.input);
  if (!input) return refuse(input.why().text);
  auto done = flags.json ? each(*t, flags, *input) : whole(*t, flags, *input);
  return done ? 0 : refuse(done.why().text);
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<tokenize_flags>();
  auto* command = app.add_subcommand("tokenize", "Text to token ids, and back");
  command->add_option("--model", flags->model, "model folder, GGUF file or bare tokenizer.json")
      ->required();
  command->add_option("FILE", flags->input, "what to read; - is standard input")
      ->capture_default_str();
  command->add_flag("--json", flags->json,
                    "the input is JSON: a text or a list of texts (with --decode: a list of ids or "
                    "a list of such lists); so is the output");
  command->add_flag("--decode", flags->decode, "from ids to text");
  command->add_flag(
      "--special", flags->special,
      "add what the model puts around a text (bos, eos); with --decode: print special "
      "tokens");
  command->add_flag("--plain", flags->plain, "text that spells a special token stays plain text");
  command->footer(
      "Examples:\n"
      "  printf 'Hello world' | lethe tokenize --model models/tiny\n"
      "  echo '[\"Hello\", \"world\"]' | lethe tokenize --model models/tiny --json\n"
      "  echo 15496 995 | lethe tokenize --model tokenizer.json --decode");
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace lethe
