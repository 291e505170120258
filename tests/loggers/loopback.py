"""A W&B server on the loopback, with as much of it as the client uses; tests read what it keeps.

Runs by name, each with its rows of history, its summary, config and exit code. An unknown question is kept in
`unknown` and answered with an error, so that a client that has moved on is noticed.
"""

import gzip
import http.server
import json
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

KEY = "f" * 40
_VIEWER = {"viewer": {
    "id": "VXNlcjox", "username": "me", "entity": "me", "email": "", "admin": False, "flags": "{}",
    "teams": {"edges": []},
}}  # fmt: skip
_PROJECT = {
    "__typename": "Project", "id": "1", "name": "icl", "entityName": "me", "createdAt": "2026-01-01",
    "isBenchmark": False, "user": None,
}  # fmt: skip
_PAGE = {"__typename": "PageInfo", "endCursor": None, "hasNextPage": False}
_ARTIFACT = {"id": "1", "state": "COMMITTED", "artifactSequence": {"id": "1", "latestArtifact": None}}
ALWAYS: dict[str, dict[str, Any]] = {  # the answer to a question of GraphQL's
    "Viewer": _VIEWER,
    "GetDefaultEntity": _VIEWER,
    "ArtifactType": {"project": {"artifact": None}},
    "CreateArtifact": {"createArtifact": {"artifact": _ARTIFACT}},  # as if it were there: nothing is sent
    "ProjectInternalId": {"project": {"id": "1", "internalId": "1"}},
    "GetProjects": {"models": {"pageInfo": _PAGE, "edges": [{"node": _PROJECT}]}},
    "ServerFeaturesQuery": {"serverInfo": {"features": []}},
}


@dataclass
class Run:
    """The data of one run that have arrived."""

    identity: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    exit_code: int | None = None


class Loopback:
    """A server: `with Loopback() as server:` answers at `server.url`, but `refuses` these questions; or
    `storage`, to take any file. `says`: a status and a body, whatever is asked; None: nothing."""

    def __init__(self, *refuses: str, says: tuple[int, bytes] | None = (0, b"")) -> None:
        self.refuses, self.says = set(refuses), says
        self.runs: dict[str, Run] = {}
        self.views: dict[str, dict[str, Any]] = {}  # specs of workspaces and reports, by kind
        self.charts: dict[str, dict[str, Any]] = {}
        self.unknown: list[str] = []
        self.lock = threading.Lock()
        self.is_dead = False
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.kept = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"WANDB_BASE_URL": self.url, "WANDB_API_KEY": KEY}

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.die()

    def die(self) -> None:
        """Close the port, and answer nothing that is connected."""
        self.is_dead = True
        self._http.shutdown()
        self._http.server_close()

    def answer(self, question: str, said: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a GraphQL question, by its name; None to an unknown one."""
        known = getattr(self, f"_{question}", lambda said: ALWAYS.get(question))
        return known(said)

    def _UpsertBucket(self, said: dict[str, Any]) -> dict[str, Any]:
        new = said["name"] not in self.runs
        run = self.runs.setdefault(said["name"], Run())
        run.identity |= {
            name: value for name, value in said.items() if value is not None and name != "config"
        }
        config = json.loads(said["config"] or "{}")
        run.config |= {name: entry["value"] for name, entry in config.items() if name != "_wandb"}
        project = {"id": "1", "name": said["project"], "entity": {"id": "1", "name": said["entity"] or "me"}}
        bucket = {
            "id": said["name"], "name": said["name"], "displayName": said["displayName"], "description": "",
            "config": said["config"], "sweepName": None, "project": project,
            "historyLineCount": len(run.rows),
        }  # fmt: skip
        return {"upsertBucket": {"bucket": bucket, "inserted": new}}

    def _RunResumeStatus(self, said: dict[str, Any]) -> dict[str, Any]:
        if (run := self.runs.get(said["name"])) is None:
            return {"model": None}
        config = {name: {"value": value} for name, value in run.config.items()}
        bucket = {
            "id": said["name"], "name": said["name"], "displayName": run.identity["displayName"], "tags": [],
            "logLineCount": 0, "eventsLineCount": 0, "historyLineCount": len(run.rows), "eventsTail": "[]",
            "historyTail": json.dumps([json.dumps(row) for row in run.rows[-1:]]),
            "summaryMetrics": json.dumps(run.summary), "config": json.dumps(config),
            "wandbConfig": json.dumps({"t": 1}),
        }  # fmt: skip
        return {"model": {"id": "1", "name": "icl", "entity": {"id": "1", "name": "me"}, "bucket": bucket}}

    def _CreateCustomChart(self, said: dict[str, Any]) -> dict[str, Any]:
        self.charts[said["chartName"]] = json.loads(said["spec"])
        return {"createCustomChart": {"chart": {"id": f"{said['entity']}/{said['chartName']}"}}}

    def _UpsertView2(self, said: dict[str, Any]) -> dict[str, Any]:
        self.views[said["type"]] = json.loads(said["spec"])
        project = {"id": "1", "name": said["projectName"], "entityName": said["entityName"]}
        about = {key: said[key] for key in ("name", "displayName", "description", "type", "spec")}
        view = about | {"id": "VmlldzoxMjM=", "project": project, "updatedAt": "2026-01-01T00:00:00"}
        return {"upsertView": {"view": view, "inserted": True}}

    _upsertView = _UpsertView2

    def _CreateRunFiles(self, said: dict[str, Any]) -> dict[str, Any]:
        urls = [{"name": name, "uploadUrl": f"{self.url}/run/{said['run']}/{name}"} for name in said["files"]]
        return {"createRunFiles": {"runID": said["run"], "uploadHeaders": [], "files": urls}}


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Pass over a client that goes away; a mistake in here is an error."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self.kept.unknown.append(repr(error))  # type: ignore[attr-defined]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _kept(self) -> "Loopback":
        return self.server.kept  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        kept, body = self._kept, self._body()
        if body is None:
            return
        with kept.lock:
            if self.path == "/graphql":
                self._ask(json.loads(body))
            elif found := re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", self.path):
                _stream(kept.runs[found[1]], json.loads(body))
                self._reply(200, {"exitcode": None, "limits": {}})
            else:
                kept.unknown.append(self.path)
                self._reply(404, {})

    def do_PUT(self) -> None:
        if self._body() is not None:
            self._reply(500 if "storage" in self._kept.refuses else 200, {})

    def log_message(self, *_: object) -> None:
        pass

    def _ask(self, asked: dict[str, Any]) -> None:
        named = re.search(r"(?:query|mutation)\s+(\w+)", asked["query"])
        name = named[1] if named else ""
        if name in self._kept.refuses:
            self._reply(403, {"errors": [{"message": "permission denied"}]})
            return
        data = self._kept.answer(name, asked.get("variables") or {})
        if data is None:
            self._kept.unknown.append(f"{name}: {asked}")
        self._reply(200, {"errors": [{"message": f"unknown: {name}"}]} if data is None else {"data": data})

    def _body(self) -> bytes | None:
        """Return the body, or None if there is nothing to do with it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self._kept.is_dead:
            self.close_connection = True
            return None
        if self._kept.says is None:
            time.sleep(600)
        elif self._kept.says[0]:
            self._send(*self._kept.says)
            return None
        return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

    def _reply(self, code: int, document: dict[str, Any]) -> None:
        self._send(code, json.dumps(document).encode())

    def _send(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _stream(run: Run, said: dict[str, Any]) -> None:
    """Keep what the client streams while a run is under way: lines of files, each from an offset on."""
    for name, chunk in said.get("files", {}).items():
        lines = [json.loads(line) for line in chunk["content"]]
        if name == "wandb-history.jsonl":
            run.rows[chunk["offset"] :] = lines
        elif name == "wandb-summary.json":
            run.summary = lines[-1]
    if said.get("complete"):
        run.exit_code = said["exitcode"]
