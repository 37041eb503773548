#include "actors/cli/generate_flags.hpp"

#include <charconv>

#include "kernels/pairs_row.hpp"

namespace lethe {

namespace {

void declare_prompt(CLI::App& command, generate_flags& f) {
  auto* group = command.add_option_group("Prompt", "exactly one of these");
  group->add_option("--prompt", f.prompt, "text to continue; - reads standard input");
  group->add_option("--ids", f.ids, "token ids to continue, as 1,2,3");
  group
      ->add_option("--chat", f.chat,
                   "messages as JSON (or a file with them); without a value: a conversation in "
                   "the terminal")
      ->expected(0, 1);
  group->require_option(1);
  command.add_option("--tools", f.tools, "tools for the chat template, JSON or a file");
  command.add_option("--variables", f.variables,
                     "variables for the chat template, a JSON object or a file");
  command.add_option("--template", f.template_path, "another chat template than the model's");
  command.add_flag("--no-special", f.no_special, "add no bos or eos to --prompt");
}

void declare_sampling(CLI::App& command, generate_flags& f) {
  auto* group = command.add_option_group("Sampling", "defaults are the model's, else these");
  group->add_option("--temperature", f.wishes.temperature,
                    "0 takes the likeliest token; default 1");
  group->add_option("--top-k", f.wishes.top_k, "keep the k likeliest; 0: all");
  group->add_option("--top-p", f.wishes.top_p, "keep the likeliest that sum to p; default 1");
  group->add_option("--min-p", f.wishes.min_p,
                    "drop what is less likely than this x the likeliest; default 0");
  group->add_option("--typical-p", f.wishes.typical_p, "locally typical sampling; default 1");
  group->add_option("--repetition-penalty", f.wishes.repetition_penalty,
                    "over prompt and answer; default 1");
  group->add_option("--presence-penalty", f.how.presence_penalty, "over the answer")
      ->capture_default_str();
  group->add_option("--frequency-penalty", f.how.frequency_penalty, "over the answer, per use")
      ->capture_default_str();
  group->add_option("--logit-bias", f.bias, "ID:BIAS, may be given several times");
  group->add_option("--seed", f.seed, "with the position it decides every draw; default: random");
  group->add_option("-n,--choices", f.choices, "answers to the same prompt")->capture_default_str();
}

void declare_end(CLI::App& command, generate_flags& f) {
  auto* group = command.add_option_group("End", "whichever comes first");
  group->add_option("--max-tokens", f.max_tokens, "at most so many tokens; default 256");
  group->add_option("--stop", f.stop, "a text that ends the answer; may be given several times");
  group->add_option("--stop-id", f.stop_ids, "a token id that ends it; likewise");
  group->add_flag("--include-stop", f.include_stop, "print the stop text, too");
  group->add_flag("--ignore-eos", f.ignore_eos, "go on after the model's end token");
}

void declare_form(CLI::App& command, generate_flags& f) {
  auto* group = command.add_option_group("Form", "at most one: the answer is one of these texts");
  group->add_flag("--json-object", f.json_object, "any JSON object");
  group->add_option("--json-schema", f.schema_path, "what a JSON schema allows: a file, or - ");
  group->add_option("--grammar", f.grammar_path, "what a grammar (GBNF) allows: a file, or -");
  group->add_option("--regex", f.pattern, "what a regular expression matches as a whole");
  group->require_option(0, 1);
}

std::string row_names() {
  std::vector<const char*> names;
  for (const cpu_row* row : cpu_rows()) names.push_back(row->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void declare_compute(CLI::App& command, generate_flags& f) {
  auto* group = command.add_option_group("Compute",
                                         "none of these changes the answer's bits, "
                                         "except --arithmetic, --quant and --kv");
  group->add_option("--tensor", f.engine.ranks.tensor, "ranks that share each layer")
      ->capture_default_str();
  group->add_option("--pipeline", f.engine.ranks.pipeline, "stages that share the layers")
      ->capture_default_str();
  group->add_option("--threads", f.engine.threads, "per rank; 0: the cores, shared by the ranks")
      ->capture_default_str();
  group->add_option("--isa", f.isa, row_names() + "; default: the best here");
  group
      ->add_option("--arithmetic", f.arithmetic,
                   "exact; with weights, keys and values of bf16 tensor: by tiles (AMX), or "
                   "pairs: two numbers at once (AVX512_BF16)")
      ->capture_default_str();
  group->add_option("--quant", f.quant, "convert a float model while loading: q8_0, q4_0, ...");
  group->add_option("--kv", f.kv, "keys and values as f32, bf16 or int8")->capture_default_str();
  group->add_option("--page-size", f.engine.page_tokens,
                    "tokens in a key/value page, 1 to 64; default: 16 of f32, 32 of bf16, "
                    "64 of int8");
  group->add_option("--kv-memory", f.kv_megabytes,
                    "MiB for keys and values per rank; default: what --context needs");
  group->add_option("--context", f.engine.context, "longest prompt + answer; default: the model's");
  group->add_option("--chunk", f.engine.chunk_tokens, "prompt tokens computed at once")
      ->capture_default_str();
  group->add_flag("--lookahead", f.engine.looks_ahead,
                  "guess tokens from what the prompt and the answer said before, check several in "
                  "a step");
  group->add_option("--step-tokens", f.engine.step_tokens, "tokens of all requests in a step")
      ->capture_default_str();
}

result<std::vector<logit_bias>> parse_biases(const std::vector<std::string>& words) {
  std::vector<logit_bias> biases;
  for (const auto& word : words) {
    logit_bias b{};
    const char* end = word.data() + word.size();
    auto id = std::from_chars(word.data(), end, b.id);
    bool wrong = id.ec != std::errc() || id.ptr == end || *id.ptr != ':';
    if (!wrong) {
      auto value = std::from_chars(id.ptr + 1, end, b.bias);
      wrong = value.ec != std::errc() || value.ptr != end;
    }
    if (wrong) return fail("--logit-bias: write ID:BIAS, as 42:-1.5");
    biases.push_back(b);
  }
  return biases;
}

}  // namespace

void declare(CLI::App& command, generate_flags& f) {
  command.add_option("--model", f.model, "Hugging Face folder or GGUF file")->required();
  declare_prompt(command, f);
  declare_sampling(command, f);
  declare_end(command, f);
  declare_form(command, f);
  declare_compute(command, f);
  auto* group = command.add_option_group("Output");
  group->add_flag("--json", f.json, "one JSON object instead of the streamed text");
  group->add_option("--logprobs", f.logprobs, "log-probabilities, and those of N alternatives");
  group->add_flag("--prompt-logprobs", f.prompt_logprobs, "also of the prompt's tokens");
  group->add_flag("-q,--quiet", f.quiet, "no progress and no speed on standard error");
  command.footer(
      "Examples:\n"
      "  lethe generate --model models/tiny --prompt 'The answer is' --max-tokens 16\n"
      "  lethe generate --model models/tiny --chat '[{\"role\":\"user\",\"content\":\"Hi\"}]'\n"
      "  lethe generate --model models/tiny --prompt 'As JSON:' --json-schema person.json\n"
      "  lethe generate --model models/tiny --ids 1,2,3 --temperature 0 --tensor 2 --json");
}

result<void> understand(generate_flags& f) {
  if (!f.isa.empty()) {
    f.engine.row = find_cpu_row(f.isa.c_str());
    if (!f.engine.row || f.engine.row->round)
      return fail("--isa {}: there is none; there are: {}", f.isa, row_names());
    if (!runs_here(*f.engine.row))
      return fail("--isa {}: this processor lacks it; the best here is {}", f.isa,
                  best_cpu_row().name);
  }
  if (f.arithmetic == "tensor" || f.arithmetic == "pairs") {
    if (!f.isa.empty())
      return fail("--arithmetic {} has its own kernels: leave out --isa", f.arithmetic);
    f.engine.row = f.arithmetic == "tensor" ? &amx_tensor : &pairs_row();
    if (!runs_here(*f.engine.row))
      return fail("--arithmetic {}: this processor has no {}; say exact", f.arithmetic,
                  instructions_of(*f.engine.row));
  } else if (f.arithmetic != "exact") {
    return fail("--arithmetic {}: there is none; there are: exact, tensor, pairs", f.arithmetic);
  }
  if (f.kv == "f32")
    f.engine.kv = kv_type::f32;
  else if (f.kv == "bf16")
    f.engine.kv = kv_type::bf16;
  else if (f.kv == "int8")
    f.engine.kv = kv_type::int8;
  else
    return fail("--kv {}: there is none; there are: f32, bf16, int8", f.kv);
  f.engine.kv_bytes = f.kv_megabytes << 20;
  auto biases = parse_biases(f.bias);
  if (!biases) return biases.why();
  f.biases = *std::move(biases);
  return {};
}

}  // namespace lethe
