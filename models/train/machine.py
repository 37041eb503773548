"""What the training runs on: a CUDA device where there is one, else two cores with a real BLAS."""
import ctypes
import os
import time

# The BLAS and OpenMP have their own threads: those that have nothing to do must sleep, not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import torch  # noqa: E402  reads them as it is loaded

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


def keep_memory():
    """Makes the C library keep what is freed, rather than ask for fresh, empty pages each step."""
    library, trim_threshold, map_threshold = ctypes.CDLL(None), -1, -3
    if hasattr(library, "mallopt"):
        library.mallopt(map_threshold, 32 << 20)
        library.mallopt(trim_threshold, 1 << 30)


def device(even_if_slow=False):
    """The device to train on; ends the program where training would take days."""
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = True
        print(f"machine: {torch.cuda.get_device_name()}", flush=True)
        return "cuda"
    keep_memory()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 2)))
    speed = sgemm_gflops()
    print(f"machine: {torch.get_num_threads()} threads, sgemm {speed:.0f} GFLOP/s", flush=True)
    if speed < SLOWEST_GFLOPS and not even_if_slow:
        raise SystemExit(
            f"train: sgemm reaches {speed:.0f} GFLOP/s, below {SLOWEST_GFLOPS}; the reference BLAS "
            "is about 70 times slower than OpenBLAS. Install libopenblas0-pthread, wait until the "
            "machine is quiet, or pass --even-if-slow")
    return "cpu"
