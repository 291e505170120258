"""A verb as an application of Hydra's: it composes, a request is run, its document is printed."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob
from hydra.errors import HydraException
from omegaconf import DictConfig

from icl.cli import show, statement_files, sweep
from icl.cli.display import Display
from icl.cli.output import emit, stdout_kept_for_results
from icl.config.compose import Composed, for_hydra, hydra_set_aside, input_errors, resolve_in_job
from icl.config.search_path import GROUP_OF, ConfigDirs, conf_dir
from icl.config.session import Session, keep_cache_in, parse_session
from icl.errors import InputError, hydra_raises, suggest
from icl.jobs.execution import multirun, run_many
from icl.jobs.execution.interruption import workers_first
from icl.jobs.exit_codes import INPUT, OK, exit_code
from icl.jobs.requests.parse import OWN, parse
from icl.jobs.requests.request import Document, run_request
from icl.jobs.stored import report, sweep_status
from icl.resolver import register as register_resolvers

GROUP = {**GROUP_OF, "sweep": "sweep"}  # of a bare name
_SHOWN = ("help", "hydra_help", "cfg", "info", "shell_completion")
PARSE: dict[str, Callable[[Composed, ConfigDirs], tuple[Any, Session]]] = {
    **{verb: partial(parse, verb) for verb in OWN},
    "reproduce": run_many.parse_reproduce,
    "sweep": sweep_status.parse,
}
RUN: dict[str, Callable[[Any, Session], Document]] = {
    **dict.fromkeys(OWN, run_request),
    "reproduce": run_many.reproduce,
    "sweep": lambda request, _: sweep_status.sweep_status(request),
}
SHOW: dict[str, Callable[[Document], None]] = {
    "train": show.run,
    "check": show.check,
    "figure": lambda document: show.figures([document]),
    "reproduce": show.reproduced,
    "sweep": sweep.show,
}


@dataclass
class Application:
    """The function that Hydra calls with a config. In the command's own process it keeps what it has found;
    a job of a multirun, which may run anywhere, leaves it in its record."""

    verb: str
    configs: ConfigDirs
    overrides: tuple[str, ...]
    many: str  # what =all or =PAPER/all names, which Hydra does not see
    shared: multirun.Shared
    command: list[str]  # as it was typed: Lightning starts further processes by it
    document: Document = field(default_factory=dict)
    show: Callable[[], None] = lambda: None
    form: str = "text"
    error: BaseException | None = None

    def __call__(self, cfg: DictConfig) -> float | None:
        if self.shared.folder is not None:
            return multirun.run_job(self.shared, cfg)
        sys.argv = self.command
        try:
            with input_errors(self.configs, self.verb, self.overrides):
                composed = resolve_in_job(cfg)
            self.form = composed.settings["format"]
            (self._many if self.many else self._one)(composed)
        except Exception as error:  # of which Hydra would print more than a line
            self.error = error
        except SystemExit as left:  # a user's class may not end the command
            self.error = RuntimeError(f"SystemExit: {left.code}")
            self.error.__cause__ = left
        return None

    def _one(self, composed: Composed) -> None:
        if self.verb == "report":
            request, session = report.parse(composed, self.configs)
            with _progress(session, "report"):
                self.document, content = report.build_report(request, session)
            self.show = partial(show.report, self.document, content)
            return
        asked, session = PARSE[self.verb](composed, self.configs)
        what = f"{self.verb} {asked.id}" if self.verb in OWN else ""
        with _progress(session, what) as session:
            self.document = RUN[self.verb](asked, session)
        self.show = partial(SHOW[self.verb], self.document)

    def _many(self, composed: Composed) -> None:
        """Run all checks or figures, or all of one paper."""
        verb, ids = self.verb, {self.verb: run_many.ids_of(self.verb, self.many, self.configs)}
        session = parse_session(verb, OWN[verb], composed, self.configs)
        jobs = run_many.worker_count(composed.settings["jobs"])
        with _progress(session, quiet=True) as session:
            self.document = run_many.run_all(ids, self.overrides, session, jobs)
        shown: Callable[..., None] = show.checks if verb == "check" else show.figures
        self.show = partial(shown, self.document[f"{verb}s"])


def command(verb: str, args: Sequence[str]) -> int:
    """Run a verb; its document is printed when all is over."""
    if verb == "check" and statement_files.is_meant(args):
        return statement_files.command(args, _progress)
    started = time.monotonic()
    flags, overrides, configs, only_shows = _arguments(verb, args)
    overrides, many = _without_all(verb, overrides)
    if many and {"-m", "--multirun"} & set(flags):
        raise InputError(f"{verb}={many}: runs several jobs already; -m takes '{verb}=glob(*)'")
    shared = multirun.Shared(verb, configs)
    typed = [sys.argv[0], verb, *args]
    application = Application(verb, configs, tuple(overrides), many, shared, typed)
    start = hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=verb)(application)
    typed_wrongly = input_errors(configs, verb, overrides)
    watched = contextlib.ExitStack()
    with multirun.in_progress(multirun.Sweep(shared)) as swept, typed_wrongly:
        swept.on_start = lambda: watched.enter_context(Display(f"{verb} -m", status=swept.status))
        unusable: BaseException | None = None  # what is wrong with a job
        try:
            with _hydras_arguments([*flags, *overrides], only_shows), watched, workers_first():
                start()
        except SystemExit as left:
            unusable = left.__cause__
            if unusable is None and left.code:  # of Hydra, which has said why
                return INPUT
        if unusable is not None:  # not within `except`: each would be the other's cause
            raise unusable
    if application.error is not None:
        raise application.error
    if shared.folder is not None:
        application.document, application.form = swept.document(time.monotonic() - started), swept.form
        application.show = partial(sweep.show, application.document)
    if not application.document:  # of --help, and of a run that another process keeps
        return OK
    emit(application.document, application.show, application.form)
    return OK if verb == "report" else exit_code(application.document)


def _arguments(verb: str, args: Sequence[str]) -> tuple[list[str], list[str], ConfigDirs, bool]:
    """Return the flags, the overrides, the folders of configs and whether help or a config is only shown; a
    bad flag is one line."""
    parser = get_args_parser()

    def complain(message: str) -> NoReturn:
        flag = re.split("[ =]", message.partition("unrecognized arguments: --")[2])[0]
        spaced = [f"{one}={after}" for one, after in pairwise(args) if not after.startswith("-")]
        meant = [one[2:] for one in [*args, *spaced] if one.startswith(f"--{flag}=")]
        raise InputError(f"icl {verb}: {message}{suggest(meant) or f' (icl {verb} --help has examples)'}")

    parser.error = complain  # type: ignore[method-assign]
    parser.allow_abbrev = False
    parsed = parser.parse_intermixed_args(list(args))
    bare = [one for one in parsed.overrides if "=" not in one and not one.startswith("~")]
    if len(bare) > 1:
        raise InputError(f"icl {verb} {' '.join(bare)}: takes one name, such as PAPER/NAME, then KEY=VALUE")
    configs = ConfigDirs.of(parsed.config_dir)
    overrides = for_hydra([_named(verb, override) for override in parsed.overrides])
    listed = [_listed(override, configs) if "glob(" in override else override for override in overrides]
    shown = any(getattr(parsed, name) for name in _SHOWN)
    return [arg for arg in args if arg not in parsed.overrides], listed, configs, shown


def _named(verb: str, override: str) -> str:
    """Return a bare name as an override of the verb's own group."""
    if override.startswith("=") or ("=" not in override and "~" not in override and verb not in GROUP):
        meant = suggest([f"only=[{override}]"]) if verb == "reproduce" else ""
        raise InputError(f"{override}: must have the form KEY=VALUE{meant}")
    if "=" in override or override.startswith("~"):
        return override
    return f"{GROUP[verb]}={override}"


def _listed(override: str, configs: ConfigDirs) -> str:
    """Return GROUP=glob(...) with the options it stands for, those of nested folders included."""
    try:
        read = OverridesParser.create().parse_override(override)
    except HydraException:  # Hydra says what is wrong with it
        return override
    group, glob = read.key_or_group, read.value()
    if group not in configs.groups or not isinstance(glob, Glob):
        return override
    names = glob.filter(configs.options(group))
    if not names:
        raise InputError(f"{override}: no option of {group} is named so")
    return f"{group}={','.join(names)}"


def _without_all(verb: str, overrides: list[str]) -> tuple[list[str], str]:
    """Take check=all or figure=PAPER/all off the overrides."""
    named = [override for override in overrides if override.startswith(f"{verb}=")]
    which = named[-1].partition("=")[2] if named and verb != "train" else ""
    if which != "all" and not which.endswith("/all"):
        return overrides, ""
    return [override for override in overrides if override not in named], which


@contextlib.contextmanager
def _hydras_arguments(argv: Sequence[str], only_shows: bool) -> Iterator[None]:
    """Give Hydra its arguments, and let it raise its errors, which it prints over several lines else."""
    before = sys.argv
    register_resolvers()
    sys.argv = [before[0], *argv]
    try:
        kept = contextlib.nullcontext() if only_shows else stdout_kept_for_results()
        with kept, hydra_set_aside(), hydra_raises():
            yield
    finally:
        sys.argv = before


@contextlib.contextmanager
def _progress(session: Session, what: str = "", *, quiet: bool = False) -> Iterator[Session]:
    """Yield the session whose progress the terminal shows."""
    keep_cache_in(session.outputs)
    with Display(what, quiet=quiet) as display:
        yield replace(session, on_event=display.see)
