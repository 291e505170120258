"""Tests that a run is made and W&B's copy kept, whatever answers at W&B's address or does not."""

import http.server
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import TINY
from tests.processes import Command


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

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Pass over a client that goes away."""

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
    argv = ["train", *TINY, "logger=wandb_online", "logger.init_timeout=1", "callbacks.heatmaps=null"]
    with server(answer) as url:
        environment = {**os.environ, "WANDB_BASE_URL": url, "WANDB_API_KEY": "f" * 40}
        command = Command(
            [*argv, "format=json", f"paths.outputs={tmp_path / 'outputs'}"], tmp_path, environment
        )
        assert command.end() == 0 and "Traceback" not in command.err, command.err
    assert json.loads(command.out)["status"] == "done"
    assert command.err.count("continuing offline; upload with: wandb sync ") == 1, command.err
    assert list((tmp_path / "outputs" / "wandb").glob("*run-*/*.wandb"))
