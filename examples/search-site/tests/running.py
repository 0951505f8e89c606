"""The site as a process, started as its users start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable

from search_site import server

# Long limits, because a test machine may be busy. Fallbacks have tests of their own.
PATIENT = ["--deadline", "10", "--ranker-seconds", "10"]
RUN = Path(__file__).resolve().parents[1] / "run"


class Running:
    """`run` with free ports, until `stop`."""

    def __init__(self) -> None:
        command = [str(RUN), "--port", "0", "--rankduel-port", "0", *PATIENT]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        printed = ""
        for line in self._process.stdout:
            printed += line
            if line.startswith("dashboard"):
                break
        else:
            raise AssertionError(f"the site ended with code {self._process.wait()}:\n{printed}")
        threading.Thread(target=self._process.stdout.read, daemon=True).start()
        self.rankduel_process = int(_found(r"^rankduel +process (\d+)$", printed))
        self.site = _found(r"^site +(\S+)/$", printed)
        self.dashboard = _found(r"^dashboard +(\S+)$", printed)
        self.rankduel = self.dashboard.partition("/experiments/")[0]

    def results(self, report: str) -> Any:
        return server.call(f"{self.rankduel}/v1/experiments/{server.EXPERIMENT}/{report}")

    def kill_rankduel(self) -> None:
        os.kill(self.rankduel_process, signal.SIGKILL)

    def stop(self) -> int:
        """Returns the exit code."""
        # Ctrl-C has no effect on processes of a shell that runs in the background
        self._process.terminate()
        try:
            code = self._process.wait(60)
        finally:
            self._process.kill()
            self._process.stdout.close()  # type: ignore[union-attr]
        return code


def simulate(site: str, rankduel: str, users: int) -> str:
    """`run --simulate` at a running site. Returns what it prints."""
    command = [str(RUN), "--simulate", str(users), "--at", site, "--rankduel", rankduel]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match is not None, f"no {pattern} in:\n{text}"
    return match[1]


def until(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait for a condition that comes true soon."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
