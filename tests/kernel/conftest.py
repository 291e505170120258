"""Runs the kernel of these tests in another process (serve.cpp) where ICL_KERNEL_PROCESS=COMMAND is set,
such as one of arm64 under an emulator."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from icl.kernel import fused, normal
from icl.kernel.library import NUMBERS

OP, INPUT, NUMBER = 24 * 8, 4 * 8, 8  # bytes, as in tiles.h


@pytest.fixture(autouse=True, scope="session")
def kernel_process() -> Iterator[None]:
    command = shlex.split(os.environ.get("ICL_KERNEL_PROCESS", ""))
    if not command:
        yield
        return
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        pytest.MonkeyPatch.context() as patch,
    ):
        for module in (fused, normal):
            patch.setattr(module, "library", lambda: _Remote(process))
        yield


class _Remote(SimpleNamespace):
    """The two functions of the library that compute."""

    def __init__(self, process: Any) -> None:
        self.into, self.out = process.stdin, process.stdout

    def icl_kernel_normals(self, _: int, first: int, second: int, n: int) -> None:
        given = [ctypes.string_at(at, n * NUMBER) for at in (first, second)]
        self._ask(np.int64(n).tobytes(), *given)
        for at in (first, second):
            self._answer(at, n)

    def icl_kernel_run(self, header: Any, _: int, *settings: Any) -> int:
        single, threads, replicas, batch, data, means, gradient = settings
        program = header._obj
        numbers = {name: getattr(program, name) for name in NUMBERS}
        # Lists of gathers are written before the list of zeros.
        listed = numbers["zeros"] + numbers["n_zeros"]
        inputs = ctypes.string_at(program.inputs, program.n_inputs * INPUT)
        tensors = []
        for at, (_slot, count, per_prompt, _own) in zip(
            data, np.frombuffer(inputs, np.int64).reshape(-1, 4), strict=True
        ):
            size = replicas * int(count) * (batch if per_prompt else 1) * (4 if single else 8)
            tensors.append(ctypes.string_at(at, size))
        asked = [*numbers.values(), listed, single, threads, replicas, batch, int(gradient is not None)]
        self._ask(
            np.array([-1, *asked], dtype=np.int64).tobytes(),
            ctypes.string_at(program.ops, program.n_ops * OP),
            inputs,
            ctypes.string_at(program.lists, listed * NUMBER),
            *tensors,
        )
        self._answer(means, replicas)
        if gradient is not None:
            self._answer(gradient, replicas * program.n_gradient)
        return 0

    def _ask(self, *parts: bytes) -> None:
        self.into.write(b"".join(parts))
        self.into.flush()

    def _answer(self, at: int, n: int) -> None:
        found = self.out.read(n * NUMBER)
        assert len(found) == n * NUMBER, "the kernel's process has ended"
        ctypes.memmove(at, found, len(found))
