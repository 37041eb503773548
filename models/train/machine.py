"""What the training runs on: a CUDA device where there is one, else two cores with a real BLAS."""
import os
import time

import torch

SLOWEST_GFLOPS = 50


def sgemm_gflops(size=1024, tries=8):
    """The best of several products of two square matrices, since a shared machine stalls."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = float("inf")
    for _ in range(tries):
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return 2 * size ** 3 / best / 1e9


def device(even_if_slow=False):
    """The device to train on; ends the program where training would take days."""
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = True
        print(f"machine: {torch.cuda.get_device_name()}", flush=True)
        return "cuda"
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 2)))
    speed = sgemm_gflops()
    print(f"machine: {torch.get_num_threads()} threads, sgemm {speed:.0f} GFLOP/s", flush=True)
    if speed < SLOWEST_GFLOPS and not even_if_slow:
        raise SystemExit(
            f"train: sgemm reaches {speed:.0f} GFLOP/s, below {SLOWEST_GFLOPS}; the reference BLAS "
            "is about 70 times slower than OpenBLAS. Install libopenblas0-pthread, wait until the "
            "machine is quiet, or pass --even-if-slow")
    return "cpu"
