"""Output of `icl bench`: speed as ratios with both figures, and error rates."""

from __future__ import annotations

import sys
from typing import Any


def show_row(row: dict[str, Any]) -> None:
    print(_line(row), file=sys.stderr, flush=True)


def _line(row: dict[str, Any]) -> str:
    mark = "ok  " if row["met"] else "MISS"
    if "skipped" in row:
        return f"{mark} {row['name']}: not measured, {row['skipped']}"
    if "ratio" in row:
        target = f" ({row['target']})" if row["target"] else ""
        line = (
            f"{mark} {row['name']}: {row['ratio']:.2f}{target}; "
            f"{row['first']} {row['first_ms']:.2f} ms (CPU {row['first_cpu_ms']:.2f}), "
            f"{row['second']} {row['second_ms']:.2f} ms (CPU {row['second_cpu_ms']:.2f})"
        )
        if "compile_ms" in row:
            line += f", torch.compile {row['compile_ms']:.2f} ms after {row['compile_seconds']:.0f} s"
        if "share_of_rate" in row:
            work, rate = row["multiply_adds"] / 1e6, row["rate"] / 1e9
            line += f"; {work:.0f} M multiply-adds, {row['share_of_rate']:.0%} of {rate:.1f} G/s"
        return line
    if "times" in row:
        both = f"vectorized {row['vectorized_seconds']:.1f} s, basic {row['basic_seconds']:.1f} s"
        return f"{mark} {row['name']}: {row['times']:.1f} times as fast ({row['target']}); {both}"
    if "variance_ratio" in row:
        by_seed = ", ".join(f"{ratio:.3g}" for ratio in row["by_seed"])
        ratios = f"{row['variance_ratio']:.3g}, of a typical batch {row['typical_ratio']:.3g}"
        target = f" ({row['target']})" if row["target"] else ""
        return f"{mark} {row['name']}: {ratios}{target}; by seed {by_seed}"
    if "overhead_ms" in row:
        both = f"{row['lightning_ms']:.2f} ms, a bare loop {row['loop_ms']:.2f} ms"
        return f"{mark} {row['name']}: {row['overhead_ms']:.3f} ms more ({row['target']}); {both}"
    if "core_hours" in row:
        steps = f"{row['steps']:,} steps of {row['runs']} runs"
        return f"{mark} {row['name']}: {row['core_hours']:.0f} hours of one core for {steps}"
    peak = f", {row['peak_mb']:.0f} MB" if "peak_mb" in row else ""
    distance = f", Dist {row['dist_preconditioned']:.3f}" if "dist_preconditioned" in row else ""
    target = f" ({row['target']})" if row["target"] else ""
    digits = 1 if row["seconds"] >= 1 else 3
    return f"{mark} {row['name']}: {row['seconds']:.{digits}f} s{peak}{distance}{target}"


def show(document: dict[str, Any]) -> None:
    machine = document["machine"]
    about = f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads"
    print(f"{about}, torch {machine['torch']}; medians")
    for row in document["rows"]:
        print(_line(row))
