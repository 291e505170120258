"""Settings of a picture that change no number: matplotlib styles, width and file formats."""

import contextlib
import contextvars
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from icl.errors import InputError, nearest, one_of, real

FORMATS = ("png", "pdf", "svg")
KEYS = ("style", "width", "formats")
_WIDEST = 40.0  # inches


@dataclass(frozen=True)
class Look:
    """`style`: .mplstyle files or names of matplotlib's styles, applied in turn over the project's own;
    `width` in inches."""

    style: tuple[str, ...] = ()
    width: float | None = None
    formats: tuple[str, ...] = FORMATS

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the look that `figure.style`, `figure.width` and `figure.formats` describe."""
        style, width, formats = (settings.get(key) for key in KEYS)
        if width is not None and (width := real("figure.width", width, 1)) > _WIDEST:
            raise InputError(f"figure.width={width:g}: must be {_WIDEST:g} inches at most")
        look = cls(_texts("figure.style", style), width, _texts("figure.formats", formats) or FORMATS)
        for name in look.formats:
            one_of("figure.formats", name, FORMATS)
        for name in look.style:
            _settings(name)
        return look

    @property
    def name(self) -> str:
        """Return words for a file's name: `ieee-3.3in`; none where it is the project's own look."""
        width = [] if self.width is None else [f"{self.width:g}in"]
        return "-".join([*(Path(name).stem for name in self.style), *width])

    def rc(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """Return matplotlib's settings: the styles over `base`, whose font sizes follow the styles' own."""
        own: dict[str, Any] = {}
        for name in self.style:
            own |= _settings(name)
        scale = float(own.get("font.size", base["font.size"])) / float(base["font.size"])
        sizes = {key: scale * base[key] for key in base if key.endswith("size") and key != "lines.markersize"}
        return {**base, **sizes, **own}


def _texts(key: str, value: Any) -> tuple[str, ...]:
    values = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(one, str) and one for one in values):
        raise InputError(f"{key}={value}: must be a name or a list of names")
    return tuple(dict.fromkeys(values))


def _settings(name: str) -> dict[str, Any]:
    """Return the settings of a style: of a file, or one of matplotlib's."""
    from matplotlib import rc_params_from_file, style

    path = Path(name).expanduser()
    if not path.is_file() and name not in style.library:
        close = nearest(name, list(style.library))
        raise InputError(f"figure.style={name}: must be a file or one of matplotlib's styles{close}")
    try:
        read: Any = rc_params_from_file(path, use_default_template=False) if path.is_file() else None
        return dict(style.library[name] if read is None else read)
    except (OSError, ValueError) as error:
        raise InputError(f"figure.style={name}: cannot be read as a matplotlib style ({error})") from None


_current: contextvars.ContextVar[Look] = contextvars.ContextVar("look", default=Look())  # noqa: B039  immutable


def current() -> Look:
    """Return the look in which figures are drawn now."""
    return _current.get()


@contextlib.contextmanager
def drawn_as(look: Look) -> Iterator[None]:
    """Draw figures in this look."""
    token = _current.set(look)
    try:
        yield
    finally:
        _current.reset(token)
