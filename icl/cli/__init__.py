"""The `icl` command. Only what a verb needs is imported, so that --help, --version and list stay fast."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from icl import __version__
from icl.cli.verbs import VERBS

__all__ = ["VERBS", "main"]

HELP = """icl: the theory of in-context learning in linear transformers, reproduced and checked.

usage: icl VERB [KEY=VALUE ...]

{verbs}

Everything after a verb is a Hydra override; the shell needs quotes around lists, as in 'seeds=[0,1]'.
On every verb that runs something:
  scale=smoke|laptop|paper   format=text|json   force=true   logger=none|csv|wandb_offline|...
  paths.outputs=DIR          verbose=true       -m (multirun) --config-dir DIR
scale=smoke takes seconds for a check and up to a minute for a figure; it cannot decide claims about training.
`icl VERB --help` shows what can be set. Start with: icl list, icl check check=ahn/theorem1

exit codes: 0 every verdict as expected, 1 another verdict than expected, 2 unusable input,
  3 undecided, 4 failed, 130/143 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `icl ARGV`; without ARGV the command that this process is, with its signals and streams set up."""
    if argv is None:
        from icl.cli import process

        process.prepare()
    args = list(sys.argv[1:] if argv is None else argv)
    if args and args[0] in VERBS:
        from icl.cli import app

        code = app.run(args[0], args[1:])
    else:
        code = _without_verb(args)
    return code if argv is not None else process.finish(code)


def _without_verb(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        width = max(map(len, VERBS))
        verbs = "\n".join(f"  {name:<{width}}  {verb.summary}" for name, verb in VERBS.items())
        print(HELP.format(verbs=verbs))
        return 0
    if args[0] == "--version":
        from icl.kernel.library import instructions, why_none

        kernel = instructions()
        print(f"icl {__version__} ({f'kernel {kernel}' if kernel else f'no kernel: {why_none()}'})")
        return 0
    from icl.errors import InputError, lines_of, nearest

    error = InputError(f"no verb {args[0]} (icl --help lists them){nearest(args[0], VERBS)}")
    print(*(f"icl: {line}" for line in lines_of(error)), sep="\n", file=sys.stderr)
    return 2
