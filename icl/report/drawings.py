"""The figures' files: copies and records beside the page, the picture in both themes, and its panels."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from icl.report.content import ReportEntry
from icl.runs import atomic, documents

FOLDER = "files"
_SVG = "{http://www.w3.org/2000/svg}"
_VIEW = re.compile(r'<view id="([\w-]+)" viewBox="([-\d. ]+)"')
_BOX = re.compile(r'<svg [^>]*viewBox="([-\d. ]+)"')
ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
_DARK = {"#000000": "#e4e5e3", "#0072b2": "#3f9fdc", "#666666": "#a0a5ad", "#cccccc": "#4a4f57"}


def png_size(path: Path) -> tuple[int, int] | None:
    """Width and height, from the file's header."""
    try:
        with open(path, "rb") as file:
            head = file.read(24)
    except OSError:
        return None
    if head[:8] != b"\x89PNG\r\n\x1a\n" or len(head) < 24:
        return None
    width, height = struct.unpack(">II", head[16:])
    return width, height


@dataclass(frozen=True)
class Image:
    """A picture in both themes, as links, or in one; its size."""

    light: str
    dark: str
    size: tuple[float, float] | None


@dataclass(frozen=True)
class Picture:
    """A drawing: its files as links, the whole of it, and its panels by name, such as panel-a."""

    files: Mapping[str, str]
    whole: Image | None
    views: Mapping[str, Image]

    @property
    def links(self) -> set[str]:
        shown = [image for image in (self.whole, *self.views.values()) if image is not None]
        return {
            *self.files.values(),
            *(link for image in shown for link in (image.light, image.dark) if link),
        }


def picture(entry: ReportEntry, folder: Path, page: str) -> Picture:
    """Brings the figure's files up to date below `folder`, where `page` has a place of its own."""
    place, files = _place(folder, page, entry), {}
    for extension, source in ((entry.document or {}).get("files") or {}).items():
        target = place / re.sub(r"[^\w.-]|^\.+", "_", Path(source).name)
        if _copy_if_changed(Path(source), target):
            files[str(extension)] = target
    links = {extension: _link(folder, target) for extension, target in files.items()}
    if links:
        links["json"] = record(entry, folder, page)
    vector = _vector(files.get("svg"))
    if not vector:
        size = png_size(files["png"]) if "png" in files else None
        return Picture(links, Image(links["png"], "", size) if size else None, {})

    def image(name: str, box: Sequence[float]) -> Image:
        source = files["svg"]
        light, dark = (source.with_name(f"{source.stem}{name}{theme}.svg") for theme in ("", "-dark"))
        if not (_is_newer(light, source) and _is_newer(dark, source)):
            text = part(vector, name[1:], box) if name else vector
            _write(light, text)
            _write(dark, darken(text))
        return Image(_link(folder, light), _link(folder, dark), (box[2], box[3]))

    views = {name: image(f"-{name}", _numbers(box)) for name, box in _VIEW.findall(vector)}
    return Picture(links, image("", _numbers(_BOX.findall(vector)[0])), views)


def _vector(path: Path | None) -> str:
    """Return the drawing, unless there is none or it is torn."""
    text = path.read_text(encoding="utf-8", errors="replace") if path is not None else ""
    whole = text.rstrip().endswith("</svg>") and _BOX.search(text)
    return text if whole else ""


def _is_newer(path: Path, source: Path) -> bool:
    """Return whether `path` is newer than a copy, which keeps the time of its original."""
    return path.is_file() and path.stat().st_mtime_ns >= source.stat().st_mtime_ns


def part(vector: str, name: str, box: Sequence[float]) -> str:
    """One panel as a drawing of its own: what the other panels show is left out, what they define is not."""
    root = ElementTree.fromstring(vector)
    parents = {child: parent for parent in root.iter() for child in parent}
    shared = ElementTree.Element(f"{_SVG}g")
    for defined in [node for node in root.iter() if node.tag in (f"{_SVG}defs", f"{_SVG}style")]:
        parents[defined].remove(defined)
        shared.append(defined)
    for group in root.findall(f".//{_SVG}g[@id]"):
        if group.get("id", "").startswith("in-panel-") and not group.get("id", "").startswith(f"in-{name}."):
            parents[group].remove(group)
    for view in root.findall(f"{_SVG}view"):
        root.remove(view)
    root.insert(0, shared)
    x, y, width, height = box
    root.set("viewBox", f"{x} {y} {width} {height}")
    root.set("width", f"{width}pt")
    root.set("height", f"{height}pt")
    return ElementTree.tostring(root, encoding="unicode")


def record(entry: ReportEntry, folder: Path, page: str) -> str:
    """Write the whole document and its provenance beside the page, and return the link to it."""
    path = _place(folder, page, entry) / "record.json"
    _write(path, documents.dumps({"document": entry.document, "record": entry.record}))
    return _link(folder, path)


def darken(vector: str) -> str:
    """Return the drawing for a dark page: what is drawn in black in light, and the dark colours a little
    lighter.

    Text on the cells of a heatmap has a colour of its own (icl.figures.style) and stays as it is.
    """
    for colour, other in _DARK.items():
        vector = vector.replace(colour, other)
    return vector.replace("<svg ", f'<svg fill="{_DARK["#000000"]}" ', 1)  # what names no colour is black


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split()]


def _place(folder: Path, page: str, entry: ReportEntry) -> Path:
    parts = [re.sub(r"[^\w.-]|^\.+", "_", part) for part in (page, entry.group, *entry.id.split("/"))]
    return folder.joinpath(FOLDER, *parts)


def _link(folder: Path, path: Path) -> str:
    return quote(path.relative_to(folder).as_posix())


def _write(path: Path, text: str) -> None:
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        _put(path, lambda part: part.write_bytes(content))


def _copy_if_changed(source: Path, target: Path) -> bool:
    """Copy `source` to `target` unless size and time agree; return whether `target` is `source` now."""
    try:
        ours, theirs = target.stat() if target.exists() else None, source.stat()
        if ours is None or (ours.st_size, ours.st_mtime_ns) != (theirs.st_size, theirs.st_mtime_ns):
            _put(target, lambda part: shutil.copy2(source, part))
    except FileNotFoundError:  # the figure was removed
        return False
    return True


def _put(target: Path, fill: Callable[[Path], object]) -> None:
    """Whole or not at all; not synced to the disk, since a page that a power cut loses is written again."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = atomic.temporary(target)
    try:
        fill(part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def remove_others(folder: Path, page: str, kept: Collection[str]) -> None:
    """Files that the page no longer shows, those of a figure that is gone. Other pages keep theirs."""
    for place, _, names in os.walk(folder / FOLDER / page, topdown=False):
        for name in names:
            path = Path(place, name)
            if quote(path.relative_to(folder).as_posix()) not in kept:
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(place)
