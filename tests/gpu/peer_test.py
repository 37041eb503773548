#!/usr/bin/env python3
"""What the peer counts, and how lines stand side by side: PYTHONPATH=bench/gpu tests/gpu/peer_test.py"""

import json
import tempfile
import unittest

import beside
import peer


class Work(unittest.TestCase):
    """The same figures as tests/unit/parallel_device_bench_test.cpp has of ours."""

    def test_a_token_reads_all_weights_but_the_table_of_tokens(self):
        for name, weights, norms in (("1b", 16 * 60817408 + 262668288, 262144), ("8b", 32 * 218103808 + 525336576, 1048576)):
            self.assertEqual(peer.weight_bytes(peer.SHAPES[name]), 2 * weights + norms)

    def test_streams_read_their_keys_and_values(self):
        s = peer.SHAPES["8b"]
        self.assertEqual(peer.seen(), 286.5)
        self.assertEqual(peer.decode_bytes(s, 64) - peer.weight_bytes(s), 64 * 286.5 * 131072)

    def test_a_prompt_of_two(self):
        whole, projected = 218103808, 6144 * 4096
        products = 2 * (2 * (31 * whole + projected) + whole - projected + 525336576)
        self.assertEqual(peer.prompt_ops(peer.SHAPES["8b"], 2), products + 4 * 4096 * (3 * 31 + 2))

    def test_a_spread_is_of_milliseconds(self):
        self.assertEqual(peer.spread([0.003, 0.001, 0.002]), {"ms": 2.0, "ms_p10": 1.0, "ms_p90": 3.0})


def decode(by, ms, **more):
    line = {"bench": "model_decode", "by": by, "model": "1b", "type": "bf16", "streams": 4, "ms": ms}
    return {**line, "tokens_per_s": 4e3 / ms, "of_copy": 0.5, "steady": True, **more}


class Beside(unittest.TestCase):
    def test_the_fastest_peer_counts(self):
        table = beside.table_of([decode("lethe", 2.0, arithmetic="tensor")], [decode("torch", 4.0), decode("torch.compile", 3.0)])
        self.assertEqual(len(table), 1)
        self.assertIn("2000.0 tokens/s, share 0.50", table[0])
        self.assertIn("torch.compile bf16 1333.3, 0.50", table[0])
        self.assertIn("1.50 times as fast", table[0])

    def test_without_a_peer_it_says_so(self):
        other = decode("torch", 4.0, streams=8)
        table = beside.table_of([decode("lethe", 2.0, arithmetic="exact", steady=False)], [other])
        self.assertIn("(noisy)", table[0])
        self.assertIn("no peer", table[0])

    def test_only_lines_of_models_are_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            copy = {"bench": "copy", "us": 1}
            file.write("skipped: no torch\n" + json.dumps(copy) + "\n" + json.dumps(decode("torch", 4.0)) + "\n")
            file.flush()
            self.assertEqual(beside.lines_of(file.name), [decode("torch", 4.0)])


if __name__ == "__main__":
    unittest.main()
