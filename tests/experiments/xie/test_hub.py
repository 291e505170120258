"""Tests of model folders, judged and measured without loading them."""

import json
import math

import pytest

from icl.errors import InputError
from icl.experiments.xie import hub

SHAPES = {"a.weight": ("BF16", [3, 4]), "b.weight": ("BF16", [50, 100]), "count": ("I64", [2])}
SIZES = {"BF16": 2, "F32": 4, "I64": 8}


def safetensors(path, shapes, changed=None):
    """Return the format written out: length, header, data."""
    header = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in shapes.items():
        size = SIZES[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    data = bytearray(end)
    if changed is not None:
        data[changed] = 1
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(data))


def make(folder, changed=None, **config):
    folder.mkdir(parents=True, exist_ok=True)
    given = {
        "torch_dtype": "bfloat16", "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2,
        "hidden_size": 64, "max_position_embeddings": 128,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(given | config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    safetensors(folder / "model.safetensors", SHAPES, changed)
    return folder


def test_a_complete_folder_is_measured(tmp_path):
    folder = make(tmp_path)
    assert hub.missing_part(folder) is None and hub.has_chat_template(folder)
    assert hub.dtype_of_files(folder) == "bfloat16" and hub.longest_text(folder) == 128
    assert hub.weight_bytes(folder, "bfloat16") == 2 * (12 + 5000) + 16
    assert hub.weight_bytes(folder, "float32") == 4 * (12 + 5000) + 16
    assert hub.cache_bytes_per_token(folder, "bfloat16") == 2 * 3 * 2 * 8 * 2
    assert hub.cache_bytes_per_token(make(tmp_path, head_dim=16), "float32") == 2 * 3 * 2 * 16 * 4
    assert hub.dtype_of_files(make(tmp_path, torch_dtype=None, dtype="float16")) == "float16"
    assert hub.dtype_of_files(make(tmp_path, torch_dtype=None)) == "float32"


def test_what_is_lacking_is_named(tmp_path):
    folder = make(tmp_path)
    (folder / "tokenizer_config.json").unlink()
    assert not hub.has_chat_template(folder)
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert hub.has_chat_template(folder)
    index = {name: f"model-{part}.safetensors" for name, part in (("a", 1), ("b", 2), ("c", 2))}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    assert hub.missing_part(folder) == "1 of 2 weight files are missing"
    safetensors(folder / "model-2.safetensors", SHAPES)
    assert hub.missing_part(folder) is None
    assert hub.weight_bytes(folder, "bfloat16") == 2 * (2 * (12 + 5000) + 16)
    for name, told in (("tokenizer.json", "no tokenizer"), ("config.json", "no config.json")):
        (folder / name).unlink()
        assert hub.missing_part(folder) == told
    empty = make(tmp_path / "other")
    (empty / "model.safetensors").unlink()
    (empty / "consolidated.safetensors").write_bytes(b"")
    assert hub.missing_part(empty) == "no model.safetensors"


def test_a_file_that_is_none_is_refused(tmp_path):
    folder = make(tmp_path)
    for content in (b"", b"version https://git-lfs", b"\x05\0\0\0\0\0\0\0hello"):
        (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(InputError, match="no safetensors file"):
            hub.weight_bytes(folder, "float32")


def test_the_digest_is_of_the_content(tmp_path):
    first = hub.folder_digest(make(tmp_path / "one"))
    moved = make(tmp_path / "elsewhere" / "two")
    (moved / "README.md").write_text("other words")
    (moved / ".cache").mkdir()
    (moved / ".cache" / "x.json").write_text("{}")
    assert hub.folder_digest(moved) == first
    for byte in (3, 24 + 3, 24 + 10_000 + 3):
        changed = make(tmp_path / f"b{byte}", changed=byte)
        assert hub.folder_digest(changed) != first, "a tensor is not looked at"
    assert hub.folder_digest(make(tmp_path / "c", max_position_embeddings=64)) != first
    (moved / "tokenizer.json").write_text("[]")
    assert hub.folder_digest(moved) != first


def test_names_are_told_from_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here" / "model").mkdir(parents=True)
    key = "figure.experiment.models"
    assert hub.Source(key, "here/model").local() == tmp_path / "here" / "model"
    assert hub.Source(key, "meta-llama/Llama-3.1-8B-Instruct").local() is None
    assert hub.Source(key, str(tmp_path / "here" / "model")).label == "model"
    for name in ("/no/such/folder", "./gone", "~/gone-from-home", "a/b/c", "gone.csv"):
        with pytest.raises(InputError, match=f"{key}={name}: no such file or folder"):
            hub.Source(key, name).local()


def test_a_transformer_inside_is_found(tmp_path):
    assert hub.transformer_of(tmp_path) == tmp_path
    (tmp_path / "modules.json").write_text(json.dumps([{"path": "0_Transformer"}, {"path": "1_Pooling"}]))
    assert hub.transformer_of(tmp_path) == tmp_path / "0_Transformer"
    (tmp_path / "modules.json").write_text("[]")
    assert hub.transformer_of(tmp_path) == tmp_path


def test_the_cache_is_looked_up_without_the_network(tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants", reason="needs the llm extra")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    source = hub.Source("k", "some-lab/some-model")
    assert source.cached() is None
    place = tmp_path / "models--some-lab--some-model"
    snapshot = make(place / "snapshots" / ("a" * 40))
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("a" * 40)
    assert source.cached() == snapshot and hub.missing_part(snapshot) is None
    pinned = hub.Source("k", "some-lab/some-model", revision="b" * 40)
    assert pinned.cached() is None


def test_a_download_takes_what_is_needed_and_says_why_it_failed(monkeypatch):
    client = pytest.importorskip("huggingface_hub", reason="needs the llm extra")
    from huggingface_hub import errors

    asked = []
    refused = {
        "a/b": ConnectionError("no route\nto the host"),
        "gated/b": errors.GatedRepoError.__new__(errors.GatedRepoError),
        "no/b": errors.RepositoryNotFoundError.__new__(errors.RepositoryNotFoundError),
    }

    def download(name, **how):
        asked.append((name, how))
        if name in refused:
            raise refused[name]
        return "somewhere"

    monkeypatch.setattr(client, "snapshot_download", download)
    assert hub.Source("k", "a/b").fetch() == "a/b: cannot be downloaded (no route)"
    assert hub.Source("k", "c/d", "dataset", "f" * 40, ("x.gz",)).fetch() is None
    assert asked[1] == ("c/d", {"repo_type": "dataset", "revision": "f" * 40, "allow_patterns": ["x.gz"]})
    assert "*.safetensors" in asked[0][1]["allow_patterns"]
    assert "licence" in str(hub.Source("k", "gated/b").fetch())
    assert "no such repository" in str(hub.Source("k", "no/b").fetch())
