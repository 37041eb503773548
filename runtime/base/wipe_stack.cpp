#include "runtime/base/wipe_stack.hpp"

#include <alloca.h>

#include "runtime/base/wipe.hpp"

namespace lethe {

namespace {

void wipe_vector_registers() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    asm volatile(
        "vpxorq %%zmm16, %%zmm16, %%zmm16\n\tvmovdqa64 %%zmm16, %%zmm17\n\t"
        "vmovdqa64 %%zmm16, %%zmm18\n\tvmovdqa64 %%zmm16, %%zmm19\n\t"
        "vmovdqa64 %%zmm16, %%zmm20\n\tvmovdqa64 %%zmm16, %%zmm21\n\t"
        "vmovdqa64 %%zmm16, %%zmm22\n\tvmovdqa64 %%zmm16, %%zmm23\n\t"
        "vmovdqa64 %%zmm16, %%zmm24\n\tvmovdqa64 %%zmm16, %%zmm25\n\t"
        "vmovdqa64 %%zmm16, %%zmm26\n\tvmovdqa64 %%zmm16, %%zmm27\n\t"
        "vmovdqa64 %%zmm16, %%zmm28\n\tvmovdqa64 %%zmm16, %%zmm29\n\t"
        "vmovdqa64 %%zmm16, %%zmm30\n\tvmovdqa64 %%zmm16, %%zmm31" ::
            : "memory");  // a program for any processor has nothing of its own in these
  if (__builtin_cpu_supports("avx"))
    asm volatile("vzeroall" ::
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

}  // namespace

__attribute__((noinline)) void wipe_stack(size_t bytes) noexcept {
  wipe(alloca(bytes), bytes);
  wipe_vector_registers();
}

}  // namespace lethe
