"""Chooses the processor that machine code is made for: one kind, so that all may share the code.

Numba makes code for the very processor at hand, and its cache misses on any other. x86-64-v3 is
what nearly all processors of servers and laptops have had since 2013 (AVX2 and FMA). Numbers are
the same to the bit, as nothing is reordered or fused.
"""

import os
import platform
import sys

KIND = "x86-64-v3"
FEATURES = (  # of the kind, as LLVM names them
    "+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,"
    "+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave"
)


def name_processor() -> None:
    """Tells Numba of the kind, where this processor has it all and nobody chose another one."""
    if "numba" in sys.modules or "NUMBA_CPU_NAME" in os.environ:
        return
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return
    from llvmlite.binding import get_host_cpu_features

    there = get_host_cpu_features()
    if all(there.get(feature.removeprefix("+")) for feature in FEATURES.split(",")):
        os.environ["NUMBA_CPU_NAME"] = KIND
        os.environ["NUMBA_CPU_FEATURES"] = FEATURES
