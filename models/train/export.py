"""Writes a checkpoint as a Hugging Face folder, and reads such a folder back."""
import argparse
import json
import pathlib
import shutil

import numpy as np
import torch

import llama

NUMPY = {"F16": np.float16, "F32": np.float32}


def folder_name(name):
    return name if name.startswith("model.") else f"model.{name}"


def safetensors(tensors):
    """The file's bytes: a length, a JSON header padded to eight, then the tensors."""
    header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in tensors.items():
        blob = tensor.to(torch.float16).contiguous().cpu().numpy().tobytes()
        header[name] = {"dtype": "F16", "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(blobs)


def config(shape, end):
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "vocab_size": shape.vocab, "hidden_size": shape.hidden, "intermediate_size": shape.ff,
        "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_dim,
        "rms_norm_eps": shape.eps,
        "rope_theta": shape.theta, "rope_scaling": None, "max_position_embeddings": shape.positions,
        "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02, "use_cache": True, "torch_dtype": "float16",
        "bos_token_id": None,
        "eos_token_id": end, "transformers_version": "4.51.0"}


def write(model, tokenizer_folder, out):
    out.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if tokenizer_folder.resolve() != out.resolve():
            shutil.copy(tokenizer_folder / name, out / name)
    special = {t["content"]: t["id"]
               for t in json.loads((out / "tokenizer.json").read_text())["added_tokens"]}
    end, pad = special["<|end|>"], special["<|pad|>"]
    defaults = {"do_sample": False, "eos_token_id": end, "pad_token_id": pad,
                "transformers_version": "4.51.0"}
    for name, value in (("config.json", config(model.shape, end)),
                        ("generation_config.json", defaults)):
        (out / name).write_text(json.dumps(value, indent=1) + "\n")
    tensors = {folder_name(n): p.detach() for n, p in model.state_dict().items()}
    (out / "model.safetensors").write_bytes(safetensors(tensors))


def read(folder):
    """The model of a folder that write() made, with its weights as they were rounded."""
    c = json.loads((folder / "config.json").read_text())
    shape = llama.Shape(hidden=c["hidden_size"], heads=c["num_attention_heads"],
                        kv_heads=c["num_key_value_heads"],
                        ff=c["intermediate_size"], layers=c["num_hidden_layers"],
                        vocab=c["vocab_size"],
                        head_dim=c["head_dim"], positions=c["max_position_embeddings"])
    data = (folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    state = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            flat = np.frombuffer(data[start + first:start + last], NUMPY[entry["dtype"]])
            state[name.removeprefix("model.")] = torch.from_numpy(
                flat.astype(np.float32).reshape(entry["shape"]))
    model = llama.Llama(shape)
    model.load_state_dict(state)
    return model.eval()


def main():
    import train
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True,
                        help="folder of tokenizer.json")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    model, _ = train.load(args.checkpoint)
    write(model, args.tokenizer, args.out)
    size = (args.out / "model.safetensors").stat().st_size
    print(f"wrote {args.out}: {size / 1e6:.2f} MB of weights")


if __name__ == "__main__":
    main()
