"""Runs every command of docs/tutorial.md and compares what it prints with the page.

A block that starts with ```sh is run, each terminal of the page in its own shell. The ```text block
below it is what it prints; `…` stands for any text, and each line is found after the one before.
Only the place of the checkout, the two ports and the limits of time differ from the page. The build
is left out if `RANKDUEL_PROGRAM` is set.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
from typing import NamedTuple

from running import PATIENT, until

from search_site.server import ROOT

PAGE = ROOT / "docs" / "tutorial.md"
SECONDS = 300.0
"""For a command: the build and the simulation take the longest."""
ATTEMPTS = 30
"""For a command that sleeps first."""
_FENCE = re.compile(r"^```(\w*)(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    terminal: str
    commands: str
    printed: str


def steps(page: str) -> list[Step]:
    found: list[Step] = []
    previous = ""
    for kind, about, content in _FENCE.findall(page):
        if kind == "sh":
            found.append(Step(about.strip(), content, ""))
        elif kind == "text":
            assert previous == "sh", f"no command prints this:\n{content}"
            found[-1] = found[-1]._replace(printed=content)
        previous = kind
    return found


def matches(expected: str, printed: str) -> bool:
    """Whether the lines of the page are in the output, in this order."""
    at = 0
    for line in filter(None, expected.splitlines()):
        pattern = ".*?".join(re.escape(part) for part in line.split("…"))
        match = re.compile(pattern).search(printed, at)
        if match is None:
            return False
        at = match.end()
    return True


class Terminal:
    def __init__(self, folder: str):
        self._shell = subprocess.Popen(
            ["bash", "-o", "pipefail"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # its own process group, for Ctrl-C
        )
        self._printed = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            self._printed += line

    def enter(self, step: Step, case: unittest.TestCase) -> None:
        """Run the commands until they have printed what the page says."""
        assert self._shell.stdin is not None
        before = len(self._printed)
        # a server in the foreground does not end
        waits = "--database" not in step.commands
        self._shell.stdin.write(step.commands + ('echo "ended with $?"\n' if waits else ""))
        self._shell.stdin.flush()

        def ended() -> bool:
            printed = self._printed[before:]
            if waits:
                return re.search(r"^ended with \d+$", printed, re.MULTILINE) is not None
            return matches(step.printed, printed)

        try:
            until(lambda: ended() or self._shell.poll() is not None, step.commands, SECONDS)
        except AssertionError:
            case.fail(f"{step.commands}printed:\n{self._printed[before:]}")
        printed = self._printed[before:]
        case.assertTrue(matches(step.printed, printed), f"{step.commands}printed:\n{printed}\nnot:\n{step.printed}")
        case.assertTrue(not waits or "ended with 0\n" in printed, f"{step.commands}printed:\n{printed}")

    def close(self) -> None:
        """Ctrl-C and the end of the terminal."""
        assert self._shell.stdin is not None and self._shell.stdout is not None
        os.killpg(self._shell.pid, signal.SIGINT)
        self._shell.stdin.close()
        try:
            self._shell.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._shell.pid, signal.SIGKILL)
            self._shell.wait()
        self._reader.join()
        self._shell.stdout.close()


def free_ports() -> list[str]:
    with socket.socket() as one, socket.socket() as other:
        for listener in (one, other):
            listener.bind(("127.0.0.1", 0))
        return [str(listener.getsockname()[1]) for listener in (one, other)]


class Tutorial(unittest.TestCase):
    def test_every_command_prints_what_the_page_says(self) -> None:
        text = PAGE.read_text()
        found = steps(text)
        self.assertGreater(len(found), 8)
        site, rankduel = free_ports()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        terminals: dict[str, Terminal] = {}
        for number, step in enumerate(found, 1):
            if "cargo build" in step.commands and "RANKDUEL_PROGRAM" in os.environ:
                print(f"tutorial: command {number} left out: RANKDUEL_PROGRAM is set")
                continue
            if step.terminal not in terminals:
                terminals[step.terminal] = Terminal(folder.name)
                self.addCleanup(terminals[step.terminal].close)
            with self.subTest(step.commands):
                here = [self._here(part, site, rankduel) for part in (step.commands, step.printed)]
                self.enter(terminals[step.terminal], Step(step.terminal, *here))

    def enter(self, terminal: Terminal, step: Step) -> None:
        """Run a step; one that waits for something is run again on a machine that is slower."""
        attempts = ATTEMPTS if step.commands.startswith("sleep ") else 1
        for attempt in range(attempts):
            try:
                return terminal.enter(step, self)
            except AssertionError:
                if attempt == attempts - 1:
                    raise

    @staticmethod
    def _here(text: str, site: str, rankduel: str) -> str:
        options = " ".join(["--port", site, "--rankduel-port", rankduel, *PATIENT])
        text = text.replace("run --database", f"run {options} --database")
        if program := os.environ.get("RANKDUEL_PROGRAM"):
            text = text.replace("~/rankduel/target/debug/rankduel", program)
        text = text.replace("--at http", f"--rankduel http://127.0.0.1:{rankduel} --at http")
        return text.replace("~/rankduel/", f"{ROOT}/").replace(":8080", f":{site}").replace(":7171", f":{rankduel}")

    def test_differences_from_the_page_are_found(self) -> None:
        self.assertTrue(matches("a … c\n…\nd\n", "x\na b c\nd\n"))
        self.assertFalse(matches("a … c\n", "a b\nc\n"))
        self.assertFalse(matches("one\ntwo\n", "two\none\n"))


if __name__ == "__main__":
    unittest.main()
