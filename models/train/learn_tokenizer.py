"""Learns the vocabulary from generated text and writes tokenizer.json."""
import argparse
import json
import pathlib
import random

import chat
import stories
import tokenizer
from turns import Scene

CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": "<|end|>",
    "pad_token": "<|pad|>", "add_bos_token": False, "clean_up_tokenization_spaces": False,
    "model_max_length": 1024,
    "chat_template": "{% for message in messages %}{{ '<|' + message['role'] + '|>' "
                     "+ message['content'] + '<|end|>' }}{% endfor %}"
                     "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=3072)
    parser.add_argument("--chats", type=int, default=12000)
    args = parser.parse_args()
    texts = [stories.document(Scene(random.Random(f"tokenizer/story/{i}")))
             for i in range(args.chats // 30)]
    for i in range(args.chats):
        rng = random.Random(f"tokenizer/{i}")
        texts += [m["content"] for m in chat.chat(rng, 160)]
    merges = tokenizer.learn(texts, args.size)
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / "tokenizer.json").write_text(
        json.dumps(tokenizer.as_json(merges), ensure_ascii=False, separators=(",", ":")) + "\n")
    (args.folder / "tokenizer_config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    print(f"{len(merges)} merges from {sum(map(len, texts)) / 1e6:.1f} M characters")


if __name__ == "__main__":
    main()
