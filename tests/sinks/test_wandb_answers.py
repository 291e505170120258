"""Whatever answers at W&B's address, or does not, the run is made and W&B's copy kept."""

from __future__ import annotations

import http.server
import json
import os
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import TINY

ROOT = Path(__file__).parents[2]


class Answering(http.server.BaseHTTPRequestHandler):
    answer: tuple[int, bytes] | None = None

    def do_POST(self) -> None:
        if self.answer is None:
            time.sleep(60)
            return
        status, body = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def server(answer: tuple[int, bytes] | None) -> Iterator[str]:
    handler = type("Handler", (Answering,), {"answer": answer})

    class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """The client may go away."""

    http_server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=http_server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{http_server.server_port}"
    http_server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [(500, b""), (200, b"\x00\xff<html>"), (200, b"{}"), None],
    ids=["500", "garbage", "an empty answer", "nothing"],
)
def test_the_run_is_made_and_the_copy_kept(answer: tuple[int, bytes] | None, tmp_path: Path) -> None:
    argv = ["train", *TINY, "logger=wandb_online", "logger.init_timeout=3", "format=json"]
    script = "import sys; from icl.cli import main; sys.exit(main())"
    with server(answer) as url:
        done = subprocess.run(
            [sys.executable, "-c", script, *argv, f"paths.outputs={tmp_path / 'outputs'}"], cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "WANDB_BASE_URL": url, "WANDB_API_KEY": "f" * 40},
            capture_output=True, text=True, check=False, timeout=150,
        )  # fmt: skip
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert json.loads(done.stdout)["status"] == "done"
    assert done.stderr.count("going on offline; upload with: wandb sync ") == 1, done.stderr
    assert list((tmp_path / "outputs" / "wandb").glob("*run-*/*.wandb"))
