// Whatever is wrong with what the user gave: one line that says what and where, exit code 1 (2 for
// the command line's own grammar), nothing on standard output.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "command.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

const std::string tiny = std::string(places::source) + "/models/tiny";
using words = std::vector<std::string>;

void refuses(const words& arguments, const std::vector<std::string>& says,
             const std::string& input = {}) {
  std::string what;
  for (const auto& a : arguments) what += a.substr(0, 80) + " ";
  SCOPED_TRACE(what);
  auto ran = run_lethe(arguments, input);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.error_lines(), 1u) << ran.err;
  EXPECT_EQ(ran.err.rfind("lethe: ", 0), 0u) << ran.err;
  for (const auto& word : says) EXPECT_NE(ran.err.find(word), ran.err.npos) << ran.err;
}

words ask(const words& more) {
  words all{"generate", "--model", tiny};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

words ask_ids(const words& more) {
  words all = ask({"--ids", "1,2,3", "--max-tokens", "2"});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(CommandRefusals, WrongCuts) {
  refuses(ask_ids({"--tensor", "3"}), {"3", "4 heads"});
  refuses(ask_ids({"--tensor", "0"}), {"tensor"});
  refuses(ask_ids({"--pipeline", "64"}), {"64", "layers"});
}

TEST(CommandRefusals, LimitsOfComputing) {
  refuses(ask_ids({"--page-size", "65"}), {"65", "64"});
  refuses(ask_ids({"--chunk", "0"}), {"chunk"});
  refuses(ask_ids({"--isa", "mmx"}), {"mmx", "reference"});
  refuses(ask_ids({"--kv", "int4"}), {"int4", "int8"});
  refuses(ask_ids({"--quant", "q3_k"}), {"q3_k", "q8_0"});
  refuses(ask_ids({"--context", "1000000"}), {"1000000"});
}

TEST(CommandRefusals, LimitsOfSampling) {
  refuses(ask_ids({"--temperature", "-1"}), {"temperature"});
  refuses(ask_ids({"--temperature", "nan"}), {"temperature"});
  refuses(ask_ids({"--top-p", "1.5"}), {"top_p"});
  refuses(ask_ids({"--min-p", "-0.1"}), {"min_p"});
  refuses(ask_ids({"--logit-bias", "1"}), {"ID:BIAS"});
  refuses(ask_ids({"--logit-bias", "512:1"}), {"512"});
  refuses(ask_ids({"--logprobs", "129"}), {"128"});
  refuses(ask_ids({"-n", "0"}), {"n is 0"});
  refuses(ask({"--ids", "1", "--max-tokens", "0"}), {"max_tokens"});
}

TEST(CommandRefusals, TokenIdsOutOfRange) {
  refuses(ask({"--ids", "1,512"}), {"512"});
  refuses(ask({"--ids", "1,,2"}), {"item 1"});
  refuses(ask({"--ids", "-1"}), {"item 0"});
  refuses(ask({"--ids", "99999999999"}), {"item 0"});
  refuses({"tokenize", "--model", tiny, "--decode"}, {"512", "vocabulary"}, "1 512");
  refuses({"tokenize", "--model", tiny, "--decode"}, {"byte 2"}, "1 x");
}

TEST(CommandRefusals, PromptsThatDoNotFitTheContext) {
  std::string ids = "1";
  for (int i = 1; i < 512; ++i) ids += ",1";
  refuses(ask({"--ids", ids, "--max-tokens", "1"}), {"512"});
  std::string fits = ids.substr(2);
  auto ran = run_lethe(ask({"--ids", fits, "--max-tokens", "1", "--json"}));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

TEST(CommandRefusals, TextThatIsNotUtf8) {
  refuses(ask({"--prompt", "a\xff"}), {"UTF-8"});
  refuses({"tokenize", "--model", tiny}, {"UTF-8"}, "a\xc3(");
  refuses({"tokenize", "--model", tiny, "--json"}, {"JSON"}, "[\"a\xff\"]");
}

TEST(CommandRefusals, MessagesThatAreNoMessages) {
  refuses(ask({"--chat", "[{\"role\":"}), {"messages"});
  refuses(ask({"--chat", "/nowhere/messages.json"}), {"/nowhere/messages.json"});
  refuses(ask({"--chat", "[]", "--tools", "{"}), {"tools"});
}

TEST(CommandRefusals, TemplatesThatLoopForeverOrGrowForever) {
  scratch_folder folder;
  auto loops = folder.write("loops.jinja",
                            "{% for a in range(99999) %}{% for b in range(99999) %}"
                            "{% endfor %}{% endfor %}");
  refuses({"template", "--model", loops}, {"line 1", "more than"}, "[]");
  auto grows = folder.write("grows.jinja",
                            "{% set n = namespace(x='aaaaaaaaaaaaaaaa') %}"
                            "{% for a in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}");
  refuses({"template", "--model", grows}, {"line 1", "more than"}, "[]");
  auto recurses = folder.write("recurses.jinja", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  refuses({"template", "--model", recurses}, {"line 1", "nested"}, "[]");
  auto raises = folder.write("raises.jinja", "{{ raise_exception('roles must alternate') }}");
  refuses({"template", "--model", raises}, {"roles must alternate"}, "[]");
  auto unknown = folder.write("unknown.jinja", "line\n{{ 1 | frobnicate }}");
  refuses({"template", "--model", unknown}, {"frobnicate", "line 2"}, "[]");
}

/// A copy of the tiny model with one file changed.
class broken_model {
 public:
  broken_model() {
    for (const auto& file : std::filesystem::directory_iterator(tiny))
      std::filesystem::copy_file(file.path(), folder_ / file.path().filename().string());
  }
  void change(const std::string& name, const std::string& content) { folder_.write(name, content); }
  void replace(const std::string& name, const std::string& from, const std::string& to) {
    std::string text = read_file(folder_ / name);
    size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    change(name, text.replace(at, from.size(), to));
  }
  std::string read(const std::string& name) const { return read_file(folder_ / name); }
  std::string path() const { return folder_ / ""; }

 private:
  scratch_folder folder_;
};

void refuses_model(const broken_model& model, const std::vector<std::string>& says) {
  refuses({"generate", "--model", model.path(), "--ids", "1"}, says);
}

TEST(CommandRefusals, WeightsThatAreCutShort) {
  broken_model model;
  std::string whole = model.read("model.safetensors");
  model.change("model.safetensors", whole.substr(0, whole.size() - 1));
  refuses_model(model, {"model.safetensors"});
  model.change("model.safetensors", whole.substr(0, 7));
  refuses_model(model, {"model.safetensors"});
  model.change("model.safetensors", "");
  refuses_model(model, {"model.safetensors"});
}

TEST(CommandRefusals, AHeaderThatClaimsEverything) {
  broken_model model;
  std::string whole = model.read("model.safetensors");
  for (unsigned char top : {0x7f, 0x80, 0xff}) {
    std::string huge(8, '\xff');
    huge[7] = char(top);
    model.change("model.safetensors", huge + whole.substr(8));
    refuses_model(model, {"model.safetensors", "header"});
  }
}

TEST(CommandRefusals, AConfigThatContradictsTheWeights) {
  broken_model model;
  model.replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  refuses_model(model, {"layers.2"});
}

TEST(CommandRefusals, WhatAConfigAsksForAndWeLack) {
  broken_model model;
  model.replace("config.json", "{", "{\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0},");
  refuses_model(model, {"rope_scaling", "dynamic", "supported", "llama3"});
  broken_model other;
  other.replace("config.json", "\"llama\"", "\"mamba\"");
  refuses_model(other, {"mamba", "supported"});
  auto facts = run_lethe({"model", "inspect", other.path()});
  EXPECT_EQ(facts.exit_code, 1);
  EXPECT_NE(facts.out.find("supported   no:"), facts.out.npos) << facts.out << facts.err;
}

TEST(CommandRefusals, AModelThatIsNotThere) {
  refuses({"generate", "--model", "/nowhere", "--ids", "1"}, {"/nowhere"});
  refuses({"tokenize", "--model", "/nowhere"}, {"/nowhere"});
  refuses({"template", "--model", "/nowhere.jinja"}, {"/nowhere.jinja"});
  refuses({"model", "inspect", "/nowhere"}, {"/nowhere"});
  refuses({"model", "convert", "/nowhere", "/tmp/never-written.gguf"}, {"/nowhere"});
  EXPECT_FALSE(std::filesystem::exists("/tmp/never-written.gguf"));
}

TEST(CommandRefusals, APipeInPlaceOfAFile) {
  scratch_folder folder;
  std::string pipe = folder / "model.gguf";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refuses({"generate", "--model", pipe, "--ids", "1"}, {"not a regular file"});
}

TEST(CommandRefusals, ConvertWritesOverNothing) {
  scratch_folder folder;
  auto kept = folder.write("kept.gguf", "kept");
  refuses({"model", "convert", tiny, kept}, {"kept.gguf", "--force"});
  EXPECT_EQ(read_file(kept), "kept");
  refuses({"model", "convert", tiny, folder / "a/b.gguf"}, {"a/b.gguf"});
  refuses({"model", "convert", tiny, folder / "c.gguf", "--type", "q9"}, {"q9", "q8_0"});
  EXPECT_FALSE(std::filesystem::exists(folder / "c.gguf"));
}

TEST(CommandRefusals, AGgufThatIsNone) {
  scratch_folder folder;
  refuses({"generate", "--model", folder.write("a.gguf", "GGUF"), "--ids", "1"}, {"a.gguf"});
  refuses({"generate", "--model", folder.write("b.gguf", std::string(64, 'x')), "--ids", "1"},
          {"b.gguf"});
}

TEST(CommandRefusals, TheCommandLinesOwnGrammar) {
  for (const words& wrong :
       std::vector<words>{{},
                          {"forget"},
                          {"generate"},
                          {"generate", "--model", tiny},
                          {"generate", "--model", tiny, "--prompt", "a", "--ids", "1"},
                          {"generate", "--model", tiny, "--prompt", "a", "--tensor", "two"},
                          {"generate", "--model", tiny, "--prompt", "a", "--frobnicate"}}) {
    auto ran = run_lethe(wrong);
    EXPECT_EQ(ran.exit_code, 2) << (wrong.empty() ? "" : wrong.back());
    EXPECT_NE(ran.err, "");
  }
}

}  // namespace
}  // namespace lethe
