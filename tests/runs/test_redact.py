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
