import pytest

from icl.config.search_path import conf_dir
from icl.redact import HIDDEN, redact

SECRET = [
    "api_key", "apikey", "WANDB_API_KEY", "token", "auth_token", "authToken", "hf-token", "secret",
    "client_secret", "password", "db.password", "aws_secret_access_key", "credentials", "OPENAI_KEY",
    "NETRC_PASS", "MYSQL_PWD", "npm_auth", "auth", "Authorization", "GITHUB_PAT",
]  # fmt: skip
OF_THIS_FIELD = [
    "tokens", "token_width", "prompt_tokens", "n_tokens", "monkey", "key", "secretary", "keyboard",
    "PWD", "OLDPWD", "bypass", "compass", "pass", "path", "patience",
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


def test_measurements_are_no_secrets():
    """Keep the gradient's norm in the matrix that giannou's models call key."""
    found = {"mean": 0.1, "by_seed": {"0": 0.2, "1": None}}
    assert redact({"metrics": {"gradient_norm_key0": found}}) == {"metrics": {"gradient_norm_key0": found}}
    assert redact({"api_key": {"pin": [1234]}}) == {"api_key": HIDDEN}


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
        ("+callbacks.n={a: x, token: abc}", f"+callbacks.n={{a: x, token: {HIDDEN}}}"),
        ('x={"api_key": "abc"}', f'x={{"api_key": {HIDDEN}}}'),
        ("https://abcdef@host/1", f"https://{HIDDEN}@host/1"),
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


NAMES = [
    "OPENAI_KEY",
    "HF_TOKEN_2",
    "API_KEY_PROD",
    "DATABASE_URL",
    "SENTRY_DSN",
    "HTTPS_PROXY",
    "GITHUB_PAT",
]


@pytest.mark.parametrize("name", NAMES)
def test_variables_by_the_words_of_their_names(name, monkeypatch):
    value = "postgres://me:hunter2@db" if name.endswith(("URL", "DSN", "PROXY")) else "hunter2hunter2"
    monkeypatch.setenv(name, value)
    assert redact([f"a {value} b", "postgres://db"]) == [f"a {HIDDEN} b", "postgres://db"]


def test_a_word_of_configs_is_no_secret(monkeypatch):
    for word in ("icl.models", "undecided", "LinearRegression", "identity"):
        monkeypatch.setenv("MY_PASSWORD", word)
        assert redact(f"a {word} b") == f"a {word} b"
        monkeypatch.setenv("MY_PASSWORD", f"{word}-but-mine-1")
        assert redact(f"a {word}-but-mine-1 b") == f"a {HIDDEN} b"


def test_passwords_of_netrc(tmp_path, monkeypatch):
    (tmp_path / ".netrc").write_text("machine api.wandb.ai\n  login user\n  password 0123456789abcdef\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    assert redact({"notes": "0123456789abcdef"}) == {"notes": HIDDEN}


def test_no_shipped_key_is_called_a_secret():
    files = [path.read_text() for path in conf_dir().rglob("*.yaml")]
    keys = {
        line.partition(":")[0].strip(" -+") for text in files for line in text.splitlines() if ":" in line
    }
    assert len(keys) > 100 and not {key for key in keys if redact({key: "x"}) != {key: "x"}}
