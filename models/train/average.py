"""The weighted mean of checkpoints that grew from one another; it errs less than any of them."""
import argparse
import pathlib

import torch


def weighted(text):
    path, _, weight = text.rpartition(":")
    return pathlib.Path(path), float(weight)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("parts", type=weighted, nargs="+", metavar="CHECKPOINT:WEIGHT")
    args = parser.parse_args()
    total = sum(weight for _, weight in args.parts)
    mean = {}
    for path, weight in args.parts:
        saved = torch.load(path, map_location="cpu")
        for name, tensor in saved["model"].items():
            mean[name] = mean.get(name, 0) + tensor * (weight / total)
    torch.save(dict(saved, model=mean), args.out)


if __name__ == "__main__":
    main()
