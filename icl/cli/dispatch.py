"""A verb as an application of Hydra's: it composes, a request is run, its document is printed."""

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import entry_points
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob
from hydra.errors import HydraException
from omegaconf import DictConfig

from hydra_plugins.icl import _multirun as multirun
from icl.cli import show, sweep
from icl.cli.display import Display
from icl.cli.output import emit, stdout_kept_for_results
from icl.config import compose
from icl.config.search_path import GROUP_OF, ConfigDirs, conf_dir
from icl.config.session import COMMON, Session, keep_cache_in, parse_session
from icl.errors import InputError, hydra_raises, suggest
from icl.jobs.execution import run_many
from icl.jobs.execution.worker_signals import workers_first
from icl.jobs.exit_codes import INPUT, OK, exit_code
from icl.jobs.requests.check import of_place
from icl.jobs.requests.parse import OWN, parse
from icl.jobs.requests.request import Document, run_request
from icl.jobs.stored import report_content, sweep_status
from icl.resolver import register as register_resolvers

GROUP = {**GROUP_OF, "sweep": "sweep"}  # of a bare name
_SHOWN = ("help", "hydra_help", "cfg", "info", "shell_completion")
_OURS = {*COMMON, *OWN["check"]} - {"check", "scale", "jobs"}  # beside a file, whose settings all others are


class Verb(NamedTuple):
    """How a verb reads its config, runs, and shows its document."""

    parse: Callable[[compose.Composed, ConfigDirs], tuple[Any, Session]]
    run: Callable[[Any, Session], Document]
    show: Callable[[Document], None]


VERBS = {
    "train": Verb(partial(parse, "train"), run_request, show.run),
    "check": Verb(partial(parse, "check"), run_request, show.checks),
    "figure": Verb(partial(parse, "figure"), run_request, show.figures),
    "reproduce": Verb(partial(report_content.parse, "reproduce"), run_many.reproduce, show.reproduced),
    "report": Verb(partial(report_content.parse, "report"), report_content.build_report, show.report),
    "sweep": Verb(sweep_status.parse, lambda stored, _: sweep_status.sweep_status(stored), sweep.show),
}


class Asked(NamedTuple):
    """The arguments of a verb: Hydra's flags, overrides, and what Hydra does not see."""

    flags: list[str]
    overrides: list[str]
    configs: ConfigDirs
    only_shows: bool  # help, or a config
    many: str  # what =all or =PAPER/all names
    place: str  # a user's file of statements, or a package's statement
    settings: list[str]  # of that statement


@dataclass
class Application:
    """The function that Hydra calls with a config. In the command's own process it keeps what it has found;
    a job of a multirun, which may run anywhere, leaves it in its record."""

    verb: str
    asked: Asked
    shared: multirun.Shared
    command: list[str]  # as it was typed: Lightning starts further processes by it
    document: Document = field(default_factory=dict)
    form: str = "text"
    error: BaseException | None = None

    def __call__(self, cfg: DictConfig) -> float | None:
        if self.shared.folder is not None:
            return multirun.run_job(self.shared, cfg)
        sys.argv = self.command
        try:
            with compose.input_errors(self.asked.configs, self.verb, self.asked.overrides):
                composed = compose.resolve_in_job(cfg)
            self.form = composed.settings["format"]
            self.document = self._run(composed)
        except Exception as error:  # of which Hydra would print more than a line
            self.error = error
        except SystemExit as left:  # a user's class may not end the command
            self.error = RuntimeError(f"SystemExit: {left.code}")
            self.error.__cause__ = left
        return None

    def _run(self, composed: compose.Composed) -> Document:
        verb, asked = self.verb, self.asked
        if asked.place:
            return self._of_place(composed)
        if asked.many:
            ids = {verb: run_many.ids_of(verb, asked.many, asked.configs)}
            session = parse_session(verb, OWN[verb], composed, asked.configs)
            jobs = run_many.worker_count(composed.settings["jobs"])
            with _progress(session, quiet=True) as session:
                return run_many.run_all(ids, asked.overrides, session, jobs)
        wanted, session = VERBS[verb].parse(composed, asked.configs)
        with _progress(session, f"{verb} {wanted.id}" if verb in OWN else verb) as session:
            return VERBS[verb].run(wanted, session)

    def _of_place(self, composed: compose.Composed) -> Document:
        """Decide the statements of a user's file, or one of an installed package."""
        place, configs = self.asked.place, self.asked.configs
        session = parse_session("check", OWN["check"], composed, configs)
        with compose.input_errors(configs, "check", self.asked.overrides):
            typed = compose.values_of(self.asked.settings)
        settings = {key.removeprefix("check."): value for key, value in typed.items()}
        requests = of_place(place, settings, composed.settings)
        with _progress(session, f"check {place}") as session:
            documents = [run_request(one, session) for one in requests]
        return documents[0] if len(documents) == 1 else {"checks": documents}


def command(verb: str, args: Sequence[str]) -> int:
    """Run a verb; its document is printed when all is over."""
    if verb == "check" and "new" in args:
        if list(args) != ["new"]:
            raise InputError("icl check new: takes nothing else; icl check new > mine.py writes a file")
        print((files("icl.checks") / "template.py").read_text(encoding="utf-8"), end="")
        return OK
    started, asked = time.monotonic(), _arguments(verb, args)
    shared = multirun.Shared(verb, asked.configs)
    application = Application(verb, asked, shared, [sys.argv[0], verb, *args])
    start = hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=verb)(application)
    typed_wrongly = compose.input_errors(asked.configs, verb, asked.overrides)
    watched = contextlib.ExitStack()
    with multirun.in_progress(multirun.Sweep(shared)) as swept, typed_wrongly:
        swept.on_start = lambda: watched.enter_context(Display(f"{verb} -m", status=swept.status))
        unusable: BaseException | None = None  # what is wrong with a job
        try:
            with _hydras_arguments(asked), watched, workers_first():
                start()
        except SystemExit as left:
            unusable = left.__cause__
            if unusable is None and left.code:  # of Hydra, which has said why
                return INPUT
        if unusable is not None:  # not within `except`: each would be the other's cause
            raise unusable
    if application.error is not None:
        raise application.error
    document, form, shown = application.document, application.form, VERBS[verb].show
    if shared.folder is not None:
        document, form, shown = swept.document(time.monotonic() - started), swept.form, sweep.show
    if not document:  # of --help, and of a run that another process keeps
        return OK
    emit(document, partial(shown, document), form)
    return OK if verb == "report" else exit_code(document)


def _arguments(verb: str, args: Sequence[str]) -> Asked:
    """Read the arguments of a verb; a bad flag is one line."""
    parser = get_args_parser()

    def complain(message: str) -> NoReturn:
        flag = re.split("[ =]", message.partition("unrecognized arguments: --")[2])[0]
        spaced = [f"{one}={after}" for one, after in pairwise(args) if not re.match("-|.*=", after)]
        meant = [one[2:] for one in [*args, *spaced] if one.startswith(f"--{flag}=")]
        raise InputError(f"icl {verb}: {message}{suggest(meant) or f' (icl {verb} --help has examples)'}")

    parser.error = complain  # type: ignore[method-assign]
    parser.allow_abbrev = False
    parsed = parser.parse_intermixed_args(list(args))
    typed, place, settings = list(parsed.overrides), "", []
    bare = [one for one in typed if "=" not in one and not one.startswith("~")]
    if len(bare) > 1:
        raise InputError(f"icl {verb} {' '.join(bare)}: takes one name, such as PAPER/NAME, then KEY=VALUE")
    if verb == "check" and bare and _is_place(bare[0]):
        typed.remove(place := bare[0])
        settings = [one for one in typed if compose.key_of(one).partition(".")[0] not in _OURS]
        typed = [one for one in typed if one not in settings]
    configs = ConfigDirs.of(parsed.config_dir)
    overrides = compose.for_hydra([_named(verb, override) for override in typed])
    overrides, many = _without_all(verb, overrides)
    if (place or many) and parsed.multirun:
        raise InputError(f"{place or f'{verb}={many}'}: -m takes configs, such as '{verb}=glob(*)'")
    listed = [_listed(override, configs) if "glob(" in override else override for override in overrides]
    shown = any(getattr(parsed, name) for name in _SHOWN)
    flags = [arg for arg in args if arg not in parsed.overrides]
    return Asked(flags, listed, configs, shown, many, place, settings)


def _is_place(name: str) -> bool:
    """Return whether a name is a file's, or that of a package's statement."""
    packages = entry_points(group="icl.statements").names if "/" in name else ()
    return name.endswith(".py") or name.partition("/")[0] in packages


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
def _hydras_arguments(asked: Asked) -> Iterator[None]:
    """Give Hydra its arguments, and let it raise its errors, which it prints over several lines else."""
    before = sys.argv
    register_resolvers()
    sys.argv = [before[0], *asked.flags, *asked.overrides]
    try:
        kept = contextlib.nullcontext() if asked.only_shows else stdout_kept_for_results()
        with kept, compose.hydra_set_aside(), hydra_raises():
            yield
    finally:
        sys.argv = before


@contextlib.contextmanager
def _progress(session: Session, what: str = "", *, quiet: bool = False) -> Iterator[Session]:
    """Yield the session whose progress the terminal shows."""
    keep_cache_in(session.outputs)
    with Display(what, quiet=quiet) as display:
        yield replace(session, on_event=display.see)
