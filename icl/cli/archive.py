"""`icl archive`, `icl verify`, `icl publish`: records as a folder with digests, its verification, a site."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.cli.clean import size_in_words
from icl.cli.output import emit, stdout_kept_for_results
from icl.errors import InputError, one_of, real
from icl.jobs.exit_codes import OK, UNEXPECTED

if TYPE_CHECKING:
    from icl.config.search_path import ConfigDirs

ARCHIVE_USAGE = """usage: icl archive FOLDER [only=[NAME,...]] [scale=smoke|laptop|paper] [unfinished=true]
                  [format=text|json] [paths.outputs=DIR]

Writes finished records as one folder that can be kept, published and drawn from: runs with their weights,
metrics and configs, the figures drawn from them with their claims, and verdicts of checks. README.md and
ro-crate-metadata.json (RO-Crate 1.1, with the SHA-256 of every file) describe it. Runs that a figure has
trained for itself are taken before the figure is finished; with unfinished=true so is the newest checkpoint
of a run that is not. Called again with the same FOLDER it adds what is finished by then.
only= takes papers, figures and checks. Each record keeps the commit it was made by.

examples:
  icl archive kept/ahn 'only=[ahn]' scale=paper
  icl archive kept/fig1 only=ahn/fig1
  icl figure figure=ahn/fig1 scale=paper from=kept/ahn
"""


def archive_command(verb: str, args: Sequence[str]) -> int:
    settings = {
        "format": "text", "paths.outputs": "", "only": "", "scale": "laptop", "unfinished": "false",
    }  # fmt: skip
    folder = _read(verb, args, settings, ARCHIVE_USAGE, "a folder, such as icl archive kept/ahn")
    if folder is None:
        return OK
    from icl.jobs.stored.archive import ArchiveRequest, write_archive

    unfinished = one_of("unfinished", settings["unfinished"], ("true", "false")) == "true"
    configs, target, outputs, only, scale = _chosen(folder, settings)
    document = write_archive(ArchiveRequest(target, outputs, only, scale, unfinished, configs))
    emit(document, lambda: _show_archive(document), settings["format"])
    return OK


PUBLISH_USAGE = """usage: icl publish FOLDER [only=[PAPER,...]] [scale=smoke|laptop|paper]
                  [archive=true|false] [logbook=true|false] [format=text|json]
                  [paths.outputs=DIR]

Writes what is stored as a static site: the report with its figures and records, a page for each
claim (claims/), and the records as an archive (archive/; archive=false leaves it out). Records that the
report does not show, of other settings or scales, have pages of claims too; the archive leaves them out.
With logbook=true the claims are a logbook of Trackio's, too: `trackio logbook open` in FOLDER shows it.
Nothing is measured. Called again with the same FOLDER it writes the site anew; site.json has the SHA-256 of
every file.

examples:
  icl publish site 'only=[ahn]'
  icl publish site scale=paper archive=false
"""


def publish_command(verb: str, args: Sequence[str]) -> int:
    settings = {
        "format": "text", "paths.outputs": "", "only": "", "scale": "laptop", "archive": "true",
        "logbook": "false",
    }  # fmt: skip
    folder = _read(verb, args, settings, PUBLISH_USAGE, "a folder, such as icl publish site")
    if folder is None:
        return OK
    from icl.jobs.stored.publish import PublishRequest, publish

    archive = one_of("archive", settings["archive"], ("true", "false")) == "true"
    logbook = one_of("logbook", settings["logbook"], ("true", "false")) == "true"
    configs, site, outputs, only, scale = _chosen(folder, settings)
    document = publish(PublishRequest(site, outputs, only, scale, archive, configs, logbook))
    emit(document, lambda: _show_site(document), settings["format"])
    return OK


def _show_site(document: dict[str, Any]) -> None:
    print(f"{document['folder']}/index.html: {len(document['files'])} files, {document['claims']} claims")
    print(f"sha256 {document['sha256']}")


VERIFY_USAGE = """usage: icl verify ARCHIVE [seconds=S] [format=text|json]

Compares every file of an archive with the SHA-256 in its manifest; then computes with today's code the exact
risk of the weights of every run, measures every check again, draws one figure a paper and computes the arrays
behind it, and says what agrees, what differs and what is missing. What took more than S seconds when it was
made (60 by default) is listed as not recomputed. Nothing is written.

exit codes: 0 all agrees, 1 something differs or is missing, 2 no archive

examples:
  icl verify docs/records/paper/ahn
  icl verify kept seconds=600 format=json
"""


def verify_command(verb: str, args: Sequence[str]) -> int:
    settings = {"format": "text", "seconds": "60"}
    folder = _read(verb, args, settings, VERIFY_USAGE, "an archive, such as icl verify kept/ahn")
    if folder is None:
        return OK
    try:
        seconds = real("seconds", float(settings["seconds"]), 0)
    except ValueError:
        raise InputError(f"seconds={settings['seconds']}: must be a finite number of at least 0") from None
    from icl.runs.archive import Archive

    source = Archive.at(folder, "verify")
    from icl.config import allowed_packages
    from icl.jobs.execution.verify import verify

    with stdout_kept_for_results(), allowed_packages.frozen_allowlist(allowed_packages.allowed()):
        document = verify(source, seconds, lambda line: print(line, file=sys.stderr))
    emit(document, lambda: _show_verification(document), settings["format"])
    return UNEXPECTED if document["differs"] or document["missing"] else OK


def _show_verification(document: dict[str, Any]) -> None:
    numbers = [name for name in document["agrees"] if ": " in name or name.startswith("check ")]
    files = len(document["agrees"]) - len(numbers)
    print(f"{document['archive']}")
    print(f"  agrees: {files} files with the manifest, {len(numbers)} results with today's code")
    for name in numbers:
        print(f"    {name}")
    for title in ("differs", "not_recomputed"):
        if document[title]:
            print(f"  {title.replace('_', ' ')}: {len(document[title])}")
        for entry in document[title]:
            print(f"    {entry['what']}: {entry['why']}")
    if document["missing"]:
        print(f"  missing: {len(document['missing'])}")
    for name in document["missing"]:
        print(f"    {name}")


def _chosen(folder: str, settings: Mapping[str, str]) -> tuple[ConfigDirs, Path, Path, tuple[str, ...], str]:
    """Return where configs are, the folder to write, the outputs folder, the names chosen and the scale."""
    from icl.config.search_path import SCALES, ConfigDirs

    configs = ConfigDirs.of(None)
    outputs = Path(settings["paths.outputs"] or configs.default_outputs()).expanduser().absolute()
    only = tuple(name for name in settings["only"].strip("[]").replace(" ", "").split(",") if name)
    scale = one_of("scale", settings["scale"], SCALES)
    return configs, Path(folder).expanduser().absolute(), outputs, only, scale


def _read(verb: str, args: Sequence[str], settings: dict[str, str], usage: str, wanted: str) -> str | None:
    """Read KEY=VALUE into `settings` and return the one path given; None where help was asked for."""
    if {"--help", "-h"} & set(args):
        print(usage, end="")
        return None
    named = []
    for arg in args:
        key, given, value = arg.partition("=")
        if given and key in settings:
            settings[key] = value.strip("'\"")
        elif given and "/" not in key:
            raise InputError(f"{arg}: icl {verb} takes {', '.join(f'{known}=' for known in settings)}")
        else:
            named.append(arg)
    if len(named) != 1 or not named[0]:
        raise InputError(f"{verb}: takes {wanted}")
    one_of("format", settings["format"], ("text", "json"))
    return named[0]


def _show_archive(document: dict[str, Any]) -> None:
    count, size = len(document["files"]), size_in_words(document["bytes"])
    print(f"{document['folder']}: {count} files, {size}, {len(document['new'])} records new")
    for name in document["new"]:
        print(f"  {name}")
    print(f"sha256 {document['sha256']}")
