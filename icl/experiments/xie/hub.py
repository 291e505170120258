"""Model folders: found here or in the Hugging Face cache, judged and measured without loading them.

The network is used by `fetch` alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icl.errors import InputError

MODEL_FILES = ("*.json", "*.jinja", "*.txt", "*.model", "*.safetensors")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
_SAMPLE = 4096  # bytes of each tensor that go into a digest


@dataclass(frozen=True)
class Source:
    """Source that a setting names: a folder or file here, or a repository of the hub."""

    key: str
    name: str
    kind: str = "model"
    revision: str | None = None
    patterns: Sequence[str] = MODEL_FILES

    @property
    def label(self) -> str:
        return Path(self.name).name

    def local(self) -> Path | None:
        """Return the path, if this names one that is here; a path that is not is refused."""
        path = Path(self.name).expanduser()
        if path.exists():
            return path.absolute()
        if _HUB_NAME.fullmatch(self.name) is None or self.name.endswith((".csv", ".jsonl", ".gz")):
            raise InputError(f"{self.key}={self.name}: no such file or folder")
        return None

    def cached(self) -> Path | None:
        """Return the repository's folder in the cache of the hub, if it is there."""
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            found = snapshot_download(
                self.name, repo_type=self.kind, revision=self.revision, local_files_only=True
            )
        except (LocalEntryNotFoundError, ValueError, OSError):
            return None
        return Path(found)

    def fetch(self) -> str | None:
        """Download the repository into the hub's cache; why that was not possible, or None."""
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
        from huggingface_hub.utils import logging

        logging.set_verbosity_error()  # it would tell of every attempt
        wanted: dict[str, Any] = {"allow_patterns": list(self.patterns)}
        try:
            snapshot_download(self.name, repo_type=self.kind, revision=self.revision, **wanted)
        except GatedRepoError:
            return f"{self.name}: accept its licence on huggingface.co, then log in with `hf auth login`"
        except RepositoryNotFoundError:
            return (
                f"{self.name}: the hub has no such repository, or only for those logged in (`hf auth login`)"
            )
        except Exception as error:  # of the network, of many kinds
            why = str(error).strip().partition("\n")[0] or type(error).__name__
            return f"{self.name}: cannot be downloaded ({why})"
        return None


def missing_part(folder: Path) -> str | None:
    """Return what a folder lacks to be a model (config, tokenizer, some of the weights), or None."""
    if not (folder / "config.json").is_file():
        return "no config.json"
    if not any(
        (folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.txt", "vocab.json")
    ):
        return "no tokenizer"
    files = _weight_files(folder)
    missing = [path for path in files if not path.is_file()]
    if missing and len(files) == 1:
        return f"no {files[0].name}"
    return f"{len(missing)} of {len(files)} weight files are missing" if missing else None


def transformer_of(folder: Path) -> Path:
    """Return where a sentence-transformers folder has its transformer; of any other model, the folder
    itself."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        return folder / modules[0]["path"]
    except (OSError, ValueError, LookupError, TypeError):
        return folder


def has_chat_template(folder: Path) -> bool:
    if (folder / "chat_template.jinja").is_file() or (folder / "chat_template.json").is_file():
        return True
    return bool(_json(folder / "tokenizer_config.json").get("chat_template"))


def dtype_of_files(folder: Path) -> str:
    """Return the floating-point type a model was published in."""
    config = _json(folder / "config.json")
    found = [
        node.get(key)
        for node in (config, config.get("text_config") or {})
        for key in ("dtype", "torch_dtype")
    ]
    return next((str(dtype) for dtype in found if dtype in ("bfloat16", "float16")), "float32")


def weight_bytes(folder: Path, dtype: str) -> int:
    """Memory for the weights as `dtype`, from the headers of their files."""
    wide = {"float32": 4, "bfloat16": 2, "float16": 2}[dtype]
    total = 0
    for path in _weight_files(folder):
        for entry in _header(path)[0].values():
            size = entry["data_offsets"][1] - entry["data_offsets"][0]
            total += math.prod(entry["shape"]) * wide if entry["dtype"] in _BYTES else size
    return total


def cache_bytes_per_token(folder: Path, dtype: str) -> int:
    """Memory for the keys and values of one token."""
    config = _json(folder / "config.json")
    config = config.get("text_config") or config
    heads = config["num_attention_heads"]
    width = config.get("head_dim") or config["hidden_size"] // heads
    kept = config.get("num_key_value_heads") or heads
    return 2 * config["num_hidden_layers"] * kept * width * {"float32": 4, "bfloat16": 2, "float16": 2}[dtype]


def longest_text(folder: Path) -> int | None:
    """Return the number of tokens that the model's positions allow for."""
    config = _json(folder / "config.json")
    config = config.get("text_config") or config
    return config.get("max_position_embeddings")


def folder_digest(folder: Path) -> str:
    """Digest of a model's content, wherever it lies: small files whole; of weights the header and the
    beginning of every tensor, so that no gigabytes are read."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and _counts(path, folder)):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        for part in _samples(path) if path.suffix == ".safetensors" else [path.read_bytes()]:
            digest.update(part)
    return digest.hexdigest()[:16]


def _counts(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and any(path.match(pattern) for pattern in MODEL_FILES)


def _samples(path: Path) -> Iterator[bytes]:
    header, start = _header(path)
    yield json.dumps(header, sort_keys=True).encode()
    with open(path, "rb") as file:
        for entry in header.values():
            begin, end = entry["data_offsets"]
            file.seek(start + begin)
            yield file.read(min(end - begin, _SAMPLE))


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """Tensors by name, and where in the file their data begin."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > path.stat().st_size:
                raise ValueError("its header is longer than the file")
            found = json.loads(file.read(length))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is no safetensors file ({error})") from None
    found.pop("__metadata__", None)
    return found, 8 + length


def _weight_files(folder: Path) -> list[Path]:
    """Files from which a model is loaded, by its index, or the one file; other forms may lie beside them."""
    index = _json(folder / "model.safetensors.index.json").get("weight_map") or {"all": "model.safetensors"}
    return [folder / name for name in sorted(set(index.values()))]


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
