"""Starts rankduel beside the site, and creates the experiment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Mapping

EXPERIMENT = "manual-pages"
ROOT = Path(__file__).resolve().parents[3]


def program() -> str:
    """The rankduel program: `RANKDUEL_PROGRAM`, or on the PATH, or the newest build of this checkout."""
    given = os.environ.get("RANKDUEL_PROGRAM")
    if given:
        return given
    installed = shutil.which("rankduel")
    if installed is not None:
        return installed
    builds = [ROOT / "target" / kind / "rankduel" for kind in ("release", "debug")]
    built = [build for build in builds if os.access(build, os.X_OK)]
    if built:
        return str(max(built, key=lambda build: build.stat().st_mtime))
    raise SystemExit("there is no rankduel program: build it with `cargo build --release`, or set RANKDUEL_PROGRAM to its path")


class RankduelServer:
    """`rankduel serve` on loopback."""

    def __init__(self, database: Path, port: int = 0):
        command = [program(), "serve", "--listen", f"127.0.0.1:{port}", "--database-url", f"sqlite://{database}"]
        # without keys, since only this machine reaches it
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKDUEL_")}
        self.process = subprocess.Popen([*command, "--log", "error"], stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("listening on "):
                self.url = line.removeprefix("listening on ").strip()
                break
        else:
            raise SystemExit(f"rankduel did not start: it ended with code {self.process.wait()}")
        # the pipe must not fill
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Refused(Exception):
    """rankduel answered with a problem."""

    def __init__(self, status: int, problem: Mapping[str, Any]):
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title')} {problem.get('errors', '')}")


def call(url: str, body: Any = None) -> Any:
    """A request to rankduel that need not be fast: POST if there is a body, else GET."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(error.code, json.load(error)) from None


def create_experiment(url: str, rankers: Mapping[str, str], settle_seconds: float, sells: bool = False) -> None:
    """Create the experiment, or find that it exists with these settings. If the site sells, orders
    decide it."""
    # clicks settle on the server if the site ends before it has settled a page
    window = max(60, round(2 * settle_seconds))
    experiment: dict[str, Any] = {
        "name": EXPERIMENT,
        "rankers": [{"id": id, "description": description} for id, description in rankers.items()],
        "segments": ["short query", "long query"],
    }
    if sells:
        # a shop would take a week
        experiment["decide_by"] = {"event": "order", "window_seconds": 60, "arrival_seconds": 10}
    else:
        experiment |= {"settle_after_seconds": window, "answer_window_seconds": window}
    call(f"{url}/v1/experiments", experiment)
