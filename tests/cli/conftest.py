"""Names that tests beside these import from here."""

from tests.commands import TINY, Result, Run, tiny_argv, write  # noqa: F401
