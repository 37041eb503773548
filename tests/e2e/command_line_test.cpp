// The program as its user runs it: what it prints, in which form, and how it ends.
#include <gtest/gtest.h>

#include "command.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

const std::string tiny = std::string(places::source) + "/models/tiny";
using words = std::vector<std::string>;

words generate(const words& more) {
  words all{"generate", "--model", tiny, "--temperature", "0", "-q"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<uint64_t> ids_of(const finished& f) { return json_answer(f.out).numbers("ids"); }

const words twelve{"--prompt", "The answer is", "--max-tokens", "12", "--ignore-eos", "--json"};

words twelve_with(const words& more) {
  words all = generate(twelve);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(CommandLine, JsonHasEveryFieldInItsShape) {
  auto ran = run_lethe(twelve_with({"--logprobs", "3", "--prompt-logprobs"}));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  json_answer answer(ran.out);
  ASSERT_TRUE(answer.valid) << ran.out;
  size_t prompt = answer.numbers("prompt_ids").size();
  ASSERT_GT(prompt, 1u);
  EXPECT_EQ(answer.numbers("ids").size(), 12u);
  EXPECT_EQ(answer.text("finish_reason"), "length");
  simdjson::dom::array logprobs, top, prompt_logprobs;
  ASSERT_FALSE(answer.root["logprobs"].get_array().get(logprobs));
  ASSERT_FALSE(answer.root["top_logprobs"].get_array().get(top));
  ASSERT_FALSE(answer.root["prompt_logprobs"].get_array().get(prompt_logprobs));
  ASSERT_EQ(logprobs.size(), 12u);
  ASSERT_EQ(top.size(), 12u);
  ASSERT_EQ(prompt_logprobs.size(), prompt);
  EXPECT_TRUE(prompt_logprobs.at(0).is_null());
  EXPECT_LT(prompt_logprobs.at(1).get_double().value(), 0);
  for (size_t i = 0; i < 12; ++i) {
    ASSERT_EQ(top.at(i).get_array().size(), 3u);
    // Greedy: the token itself leads its alternatives.
    EXPECT_EQ(top.at(i).at(0).at(0).get_uint64().value(), answer.numbers("ids")[i]);
    EXPECT_EQ(top.at(i).at(0).at(1).get_double().value(), logprobs.at(i).get_double().value());
  }
}

TEST(CommandLine, WithoutAskingThereAreNoLogprobs) {
  auto ran = run_lethe(generate(twelve));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* key : {"logprobs", "top_logprobs", "prompt_logprobs"})
    EXPECT_EQ(ran.out.find(key), ran.out.npos) << key;
}

TEST(CommandLine, NoWayOfComputingChangesTheAnswer) {
  auto plain = run_lethe(generate(twelve));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  for (const words& how : std::vector<words>{{"--tensor", "2", "--pipeline", "2"},
                                             {"--tensor", "4", "--page-size", "1", "--chunk", "1"},
                                             {"--page-size", "64", "--chunk", "7"},
                                             {"--isa", "reference", "--threads", "3"},
                                             {"--step-tokens", "4", "--chunk", "4"}})
    EXPECT_EQ(run_lethe(twelve_with(how)).out, plain.out) << how.front();
}

TEST(CommandLine, StreamsWhatJsonCallsText) {
  auto ran =
      run_lethe(generate({"--prompt", "The answer is", "--max-tokens", "12", "--ignore-eos"}));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, json_answer(run_lethe(generate(twelve)).out).text("text") + "\n");
}

TEST(CommandLine, TellsSpeedAndWhatItWiped) {
  auto ran = run_lethe({"generate", "--model", tiny, "--prompt", "Hello", "--max-tokens", "4"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.err.find("prompt "), ran.err.npos);
  EXPECT_NE(ran.err.find("wiped "), ran.err.npos);
  EXPECT_EQ(ran.error_lines(), 1u) << ran.err;
}

TEST(CommandLine, IdsContinueAsTheirText) {
  auto of_text = run_lethe(generate(twelve));
  std::string ids;
  for (auto id : json_answer(of_text.out).numbers("prompt_ids"))
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  auto of_ids = run_lethe(generate({"--ids", ids, "--max-tokens", "12", "--ignore-eos", "--json"}));
  EXPECT_EQ(of_ids.out, of_text.out);
}

TEST(CommandLine, AFolderWithoutTokenizerRunsOnIds) {
  scratch_folder folder;
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(tiny + "/" + name, folder / name);
  words ask{"generate", "--model", folder / "", "--ids",        "1,2,3", "--temperature",
            "0",        "-q",      "--json",    "--max-tokens", "5",     "--ignore-eos"};
  auto bare = run_lethe(ask);
  ASSERT_EQ(bare.exit_code, 0) << bare.err;
  ask[2] = tiny;
  EXPECT_EQ(ids_of(bare), ids_of(run_lethe(ask)));
  EXPECT_EQ(json_answer(bare.out).text("text"), "");
  auto text = run_lethe({"generate", "--model", folder / "", "--prompt", "Hello"});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.err.find("tokenizer.json"), text.err.npos) << text.err;
}

TEST(CommandLine, AStopTextEndsTheAnswerBeforeIt) {
  std::string whole = json_answer(run_lethe(generate(twelve)).out).text("text");
  auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  size_t at = 1;
  while (at + 3 < whole.size() && !std::all_of(&whole[at], &whole[at + 3], letter)) ++at;
  std::string stop = whole.substr(at, 3);
  ASSERT_EQ(whole.find(stop), at) << whole;
  auto ran = run_lethe(twelve_with({"--stop", stop}));
  EXPECT_EQ(json_answer(ran.out).text("text"), whole.substr(0, at));
  EXPECT_EQ(json_answer(ran.out).text("finish_reason"), "stop");
  auto with = run_lethe(twelve_with({"--stop", stop, "--include-stop"}));
  EXPECT_EQ(json_answer(with.out).text("text"), whole.substr(0, at + stop.size()));
}

TEST(CommandLine, AStopIdEndsTheAnswerAndIsNoPartOfIt) {
  auto all = ids_of(run_lethe(generate(twelve)));
  ASSERT_EQ(all.size(), 12u);
  auto ran = run_lethe(twelve_with({"--stop-id", std::to_string(all[5])}));
  auto first = size_t(std::find(all.begin(), all.end(), all[5]) - all.begin());
  EXPECT_EQ(ids_of(ran), std::vector<uint64_t>(all.begin(), all.begin() + ptrdiff_t(first)));
  EXPECT_EQ(json_answer(ran.out).text("finish_reason"), "stop");
}

TEST(CommandLine, TheSeedDecidesAndChoicesDiffer) {
  words ask{"generate",      "--model", tiny,           "--prompt", "The answer is",
            "--max-tokens",  "12",      "--ignore-eos", "--json",   "-q",
            "--temperature", "1",       "-n",           "3",        "--seed"};
  auto with_seed = [&ask](const char* seed) {
    words all = ask;
    all.push_back(seed);
    return run_lethe(all).out;
  };
  std::string seven = with_seed("7");
  EXPECT_EQ(seven, with_seed("7"));
  EXPECT_NE(seven, with_seed("8"));
  json_answer answer(seven);
  simdjson::dom::array choices;
  ASSERT_FALSE(answer.root["choices"].get_array().get(choices));
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_NE(simdjson::minify(choices.at(0)["ids"]), simdjson::minify(choices.at(1)["ids"]));
}

TEST(CommandLine, AConversationAnswersAsTheSameMessagesWould) {
  auto talk = run_lethe(generate({"--chat", "--max-tokens", "6"}), "Hello\nAnd now\n\n");
  ASSERT_EQ(talk.exit_code, 0) << talk.err;
  auto once = [](const std::string& messages) {
    auto ran = run_lethe(generate({"--chat=" + messages, "--max-tokens", "6", "--json"}));
    return json_answer(ran.out);
  };
  std::string hello = R"({"role":"user","content":"Hello"})";
  auto first = once("[" + hello + "]");
  ASSERT_TRUE(first.valid);
  auto said = simdjson::to_string(first.root["text"].value());
  auto second = once("[" + hello + R"(,{"role":"assistant","content":)" + said +
                     R"(},{"role":"user","content":"And now"}])");
  ASSERT_TRUE(second.valid);
  EXPECT_EQ(talk.out, first.text("text") + "\n\n" + second.text("text") + "\n\n");
}

TEST(CommandLine, MessagesMayComeFromAFileOrStandardInput) {
  scratch_folder folder;
  std::string messages = R"([{"role":"user","content":"Hello world"}])";
  auto given = run_lethe(generate({"--chat", messages, "--max-tokens", "4", "--json"}));
  ASSERT_EQ(given.exit_code, 0) << given.err;
  auto path = folder.write("messages.json", messages);
  auto file = run_lethe(generate({"--chat", path, "--max-tokens", "4", "--json"}));
  auto input = run_lethe(generate({"--chat", "-", "--max-tokens", "4", "--json"}), messages);
  EXPECT_EQ(file.out, given.out);
  EXPECT_EQ(input.out, given.out);
}

TEST(CommandLine, TokenizesAndBack) {
  std::string text = "Hello w\xc3\xb6rld, \xf0\x9f\x8c\x8a 42\n";
  auto ids = run_lethe({"tokenize", "--model", tiny}, text);
  ASSERT_EQ(ids.exit_code, 0) << ids.err;
  EXPECT_EQ(run_lethe({"tokenize", "--model", tiny + "/tokenizer.json"}, text).out, ids.out);
  EXPECT_EQ(run_lethe({"tokenize", "--model", tiny, "--decode"}, ids.out).out, text);
  auto list = run_lethe({"tokenize", "--model", tiny, "--json"}, R"(["Hello", ""])");
  ASSERT_EQ(list.exit_code, 0) << list.err;
  auto back = run_lethe({"tokenize", "--model", tiny, "--json", "--decode"}, list.out);
  EXPECT_EQ(back.out, "[\"Hello\",\"\"]\n");
}

TEST(CommandLine, RendersTheTemplateThatChatUses) {
  std::string messages = R"([{"role":"user","content":"Hi"}])";
  auto rendered = run_lethe({"template", "--model", tiny}, messages);
  ASSERT_EQ(rendered.exit_code, 0) << rendered.err;
  auto chat = run_lethe(generate({"--chat", messages, "--max-tokens", "1", "--json"}));
  auto plain = run_lethe(generate({"--prompt", "-", "--no-special", "--max-tokens", "1", "--json"}),
                         rendered.out);
  EXPECT_EQ(plain.out, chat.out);
}

TEST(CommandLine, ABareTemplateRenders) {
  scratch_folder folder;
  auto path = folder.write("own.jinja", "{{ bos_token }}{{ messages[0].content | upper }}");
  auto ran = run_lethe({"template", "--model", path, "--bos", "<s>"},
                       R"([{"role":"user","content":"hi"}])");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "<s>HI");
}

TEST(CommandLine, AConvertedModelAnswersTheSame) {
  scratch_folder folder;
  const std::string same_file_type = "f16";
  for (const std::string type : {"f16", "q8_0"}) {
    std::string file = folder / (type + ".gguf");
    auto made = run_lethe({"model", "convert", tiny, file, "--type", type});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    auto facts = run_lethe({"model", "inspect", file, "--context", "100"});
    ASSERT_EQ(facts.exit_code, 0) << facts.err;
    EXPECT_NE(facts.out.find(type), facts.out.npos) << facts.out;
    EXPECT_NE(facts.out.find("for 100 tokens"), facts.out.npos) << facts.out;
    words ask = generate(twelve);
    ask[2] = file;
    auto ran = run_lethe(ask);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    // Quantizing while loading is the same arithmetic as a file quantized before.
    words same = generate(twelve);
    if (type != same_file_type) same.insert(same.end(), {"--quant", type});
    EXPECT_EQ(ran.out, run_lethe(same).out) << type;
  }
}

TEST(CommandLine, KeysAreMadeWhereTheClusterFileSays) {
  scratch_folder folder;
  auto file = folder.write("c.toml", "[model]\npath=\"" + tiny +
                                         "\"\n[[hosts]]\nname=\"a\"\nport=1\n[[hosts]]\nname="
                                         "\"b\"\nport=2\n[tls]\nfolder=\"keys\"\n");
  auto made = run_lethe({"keys", "init", file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const char* name : {"ca.crt", "ca.key", "a.crt", "a.key", "b.crt", "b.key"})
    EXPECT_TRUE(std::filesystem::exists(folder / (std::string("keys/") + name))) << name;
  auto again = run_lethe({"keys", "init", file});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out.find("wrote"), again.out.npos) << again.out;
  auto none = folder.write("none.toml", "[model]\npath=\"" + tiny + "\"\n");
  EXPECT_EQ(run_lethe({"keys", "init", none}).exit_code, 1);
}

TEST(CommandLine, AFileOfDevicesIsAPlanThatSaysWhatIsLeftOfEach) {
  auto says = [](const std::string& text, const char* what) {
    return text.find(what) != text.npos;
  };
  for (const char* name : {"gpu-8.toml", "gpu-2x8.toml"}) {
    auto checked = run_lethe({"config", "check", std::string(places::source) + "/configs/" + name});
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    EXPECT_TRUE(says(checked.out, "8 devices of ")) << checked.out;
    EXPECT_FALSE(says(checked.out, "refuses")) << checked.out;
  }
  scratch_folder folder;
  auto file = [&](const std::string& engines) {
    return folder.write("c.toml", "[model]\npath = \"" + tiny +
                                      "\"\n[[hosts]]\nname = \"a\"\ndevices = [\"cuda:1\"]\n"
                                      "device_memory = \"2 GiB\"\n[engines]\n" +
                                      engines);
  };
  auto checked = run_lethe({"config", "check", file("processes = \"ranks\"\n")});
  EXPECT_TRUE(says(checked.out, "stage 0 rank 0  cuda:1  ")) << checked.out;
  EXPECT_TRUE(says(checked.out, " weights, 256.0 MiB keys and values, ")) << checked.out;
  EXPECT_TRUE(says(checked.out, " steps\n")) << checked.out;
  EXPECT_TRUE(says(checked.out, " graphs, 0 bytes NCCL, 768.0 MiB context; ")) << checked.out;
  EXPECT_TRUE(says(checked.out, " left of 2.0 GiB")) << checked.out;
  auto shared = file("count = 1\n");
  EXPECT_TRUE(says(run_lethe({"config", "check", shared}).out, "`lethe up` refuses it: engine 0"));
  auto up = run_lethe({"up", shared});
  EXPECT_EQ(up.exit_code, 1);
  EXPECT_TRUE(says(up.err, "is on cuda:1 of a, which wants a process")) << up.err;
}

TEST(CommandLine, AReaderThatLeavesEndsItQuietly) {
  for (const words& command :
       std::vector<words>{{"model", "inspect", tiny},
                          generate({"--prompt", "a", "--max-tokens", "300", "--ignore-eos"}),
                          generate({"--prompt", "a", "--max-tokens", "9", "--json"}),
                          {"config", "keys"},
                          {"config", "check", std::string(places::source) + "/configs/one.toml"}}) {
    auto ran = run_lethe_unread(command);
    EXPECT_TRUE(ran.exit_code == 0 || ran.exit_code == 1) << command[0] << ran.exit_code << ran.err;
    EXPECT_LE(ran.error_lines(), 1u) << ran.err;
  }
}

TEST(CommandLine, AnUnknownCommandIsNamed) {
  auto says = [](const words& command, const std::string& what) {
    auto ran = run_lethe(command);
    EXPECT_EQ(ran.exit_code, 2) << ran.out;
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "lethe: there is no command \"" + what + "\n");
  };
  says({"witness"}, "witness\"; a witness is `lethe up FILE` with a table [witness]");
  says({"relay", "--help"}, "relay\"; a relay is `lethe up FILE` with a table [relay]");
  says({"issuer", "x.toml"}, "issuer\"; an issuer is `lethe up FILE` with a table [issuer]");
  says({"fecth", "client.toml"}, "fecth\"; did you mean \"fetch\"?");
  says({"nothing-like-it"}, "nothing-like-it\"; lethe --help names them");
  EXPECT_EQ(run_lethe({"fetch", "--help"}).exit_code, 0);
  EXPECT_EQ(run_lethe({"--help"}).exit_code, 0);
}

TEST(CommandLine, EveryCommandHasHelpThatTeaches) {
  for (const words& command : std::vector<words>{{"generate"},
                                                 {"tokenize"},
                                                 {"template"},
                                                 {"model", "inspect"},
                                                 {"model", "convert"},
                                                 {"config", "check"}}) {
    words ask = command;
    ask.push_back("--help");
    auto help = run_lethe(ask);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find("Usage"), help.out.npos) << command.back();
    EXPECT_GT(std::count(help.out.begin(), help.out.end(), '\n'), 6) << command.back();
  }
}

}  // namespace
}  // namespace lethe
