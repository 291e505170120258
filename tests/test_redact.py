import pytest

from icl.config.search_path import ConfigDirs
from icl.redact import HIDDEN, holds_secret, redact

SECRET = [
    "api_key", "apikey", "WANDB_API_KEY", "token", "auth_token", "authToken", "hf-token", "secret",
    "client_secret", "password", "db.password", "aws_secret_access_key", "credentials", "MYTOKEN",
    "NETRC_PASS", "MYSQL_PWD", "npm_auth",
]  # fmt: skip
OF_THIS_FIELD = [
    "tokens", "token_width", "prompt_tokens", "n_tokens", "monkey", "key", "secretary", "keyboard", "betoken",
    "PWD", "OLDPWD", "bypass", "compass", "pass",
]  # fmt: skip
NO_SECRET = [
    "https://host:8080/path@x", "git@github.com:lab/icl", "of each token: 1", "sk-learn", "https://host/a:b",
    "0123456789abcdef0123456789abcdef01234567",
]  # fmt: skip


@pytest.mark.parametrize("key", SECRET + OF_THIS_FIELD)
def test_what_a_secret_key_holds_is_hidden_unless_it_is_empty(key):
    shown = HIDDEN if key in SECRET else "s3cr3t"
    assert redact({"logger": [{key: "s3cr3t"}]}) == {"logger": [{key: shown}]}
    assert redact([f"logger.{key}=s3cr3t"]) == [f"logger.{key}={shown}"]
    for empty in (None, "", False):
        assert redact({key: empty}) == {key: empty}


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
        ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-m y", f"x {HIDDEN} y"),
        ("https://hooks.slack.com/services/T0/B0/XyZ a", f"https://hooks.slack.com/services/{HIDDEN} a"),
        ("https://discord.com/api/webhooks/1/XyZ", f"https://discord.com/api/webhooks/{HIDDEN}"),
        *((text, text) for text in NO_SECRET),
    ],
)
def test_secrets_in_text(text, shown):
    assert redact({"a": [text]}) == {"a": [shown]}


@pytest.mark.parametrize("word", ["icl.models", "ahn/theorem3", "undecided", "LinearRegression", "identity"])
def test_what_icl_publishes_is_no_secret(word, monkeypatch):
    monkeypatch.setenv("MY_PASSWORD", word)
    assert redact({"_target_": "icl.models.SparseA", "x": word}) == {
        "_target_": "icl.models.SparseA",
        "x": word,
    }
    monkeypatch.setenv("MY_PASSWORD", f"{word}-but-mine")
    assert holds_secret(f"a {word}-but-mine b") and not holds_secret(word)


def test_a_class_that_was_imported_is_no_secret(monkeypatch):
    monkeypatch.setenv("MY_SECRET", "mylab.parts")
    document = {
        "task": {"_target_": "mylab.parts.Wider"},
        "code": ["mylab.parts.Wider"],
        "notes": "mylab.parts",
    }
    assert redact(document) == {**document, "notes": HIDDEN}


def test_no_shipped_key_is_called_a_secret():
    files = [path.read_text() for path, _ in ConfigDirs().files()]
    keys = {
        line.partition(":")[0].strip(" -+") for text in files for line in text.splitlines() if ":" in line
    }
    assert len(keys) > 100 and not {key for key in keys if redact({key: "x"}) != {key: "x"}}
