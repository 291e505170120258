from __future__ import annotations

import pytest

from icl.runs.redact import HIDDEN, redact


@pytest.mark.parametrize(
    "key", ["api_key", "apikey", "WANDB_API_KEY", "token", "auth_token", "authToken", "hf-token", "secret",
            "client_secret", "password", "db.password", "aws_secret_access_key", "credentials"]
)  # fmt: skip
def test_secret_keys(key):
    assert redact({"logger": [{key: "s3cr3t"}]}) == {"logger": [{key: HIDDEN}]}
    assert redact([f"logger.{key}=s3cr3t"]) == [f"logger.{key}={HIDDEN}"]


@pytest.mark.parametrize(
    "key", ["tokens", "token_width", "prompt_tokens", "n_tokens", "monkey", "key", "secretary", "keyboard",
            "betoken"]
)  # fmt: skip
def test_words_of_this_field_stay(key):
    document = {key: "kept", "overrides": [f"model.{key}=kept"]}
    assert redact(document) == document


def test_empty_secrets_stay_visible_as_empty():
    document = {"api_key": None, "token": "", "password": False}
    assert redact(document) == document


def test_values_of_secret_environment_variables_are_hidden_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    monkeypatch.setenv("SHORT_TOKEN", "ab")
    monkeypatch.setenv("WANDB_PROJECT", "in-context-learning")
    document = {"url": "https://u:0123456789abcdef@host", "words": ("ab", "in-context-learning", 5)}
    assert redact(document) == {"url": f"https://u:{HIDDEN}@host", "words": ["ab", "in-context-learning", 5]}
    assert document["url"].count("0123456789abcdef") == 1, "the caller's own is left alone"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://me:hunter2@db/x?y=1", f"postgres://me:{HIDDEN}@db/x?y=1"),
        ("mlflow+https://me:p@ss@host:80/a, x@y", f"mlflow+https://me:{HIDDEN}@host:80/a, x@y"),
        ("redis://:hunter2@host", f"redis://:{HIDDEN}@host"),
        ("logger.password='a b'", f"logger.password={HIDDEN}"),
        ("+logger.mine={name:x,auth_token:abc,b:1}", f"+logger.mine={{name:x,auth_token:{HIDDEN},b:1}}"),
        ("entity=wandb_v1_abcdefghij0123456789", f"entity={HIDDEN}"),
        ("to hf_abcdefghij0123456789.", f"to {HIDDEN}."),
    ],
)
def test_secrets_in_text(text, shown):
    assert redact({"a": [text]}) == {"a": [shown]}


@pytest.mark.parametrize(
    "text",
    ["https://host:8080/path@x", "git@github.com:lab/icl", "of each token: 1", "sk-learn", "https://host/a:b",
     "0123456789abcdef0123456789abcdef01234567"],
)  # fmt: skip
def test_text_without_secrets(text):
    assert redact(text) == text
