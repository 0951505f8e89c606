#!/usr/bin/env python3
"""Runs the exchanges of clients.json with clients, and prints a table of the results.

    python3 conformance/check_clients.py --program target/debug/rankduel \\
        'python=python3 clients/python/tests/adapter.py' 'go=target/check-clients/go-adapter'

Each argument is a name and the command of an adapter: a program that reads one request per line and
writes one answer per line, both JSON. conformance/README.md describes the requests. It requires only
Python 3.9.
"""

import argparse
import concurrent.futures
import json
import os
import queue
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from failing_server import FailingServer
from proxy import Proxy

ANSWER_SECONDS = 60
"""No step may take longer, whatever the server does."""
AT_THE_SAME_TIME = 3
NOBODY = "http://127.0.0.1:1"
"""A port that the system gives to no server."""
SECRET = "S3cret"
"""A part of each key and password in the exchanges. No error may show it."""


class Mismatch(Exception):
    """A client did not do what the exchange demands."""


class RealServer:
    """`rankduel serve`, with API keys or without."""

    def __init__(self, program, folder, scopes=()):
        self._program = program
        self._environment = {**os.environ, "RANKDUEL_DATABASE_URL": f"sqlite://{folder}/rankduel.db"}
        self._run("migrate")
        self.keys = {scope: self._key(scope) for scope in scopes}
        command = [program, "serve", "--listen", "127.0.0.1:0", "--log", "error"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=self._environment, text=True)
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"the server ended with {self._process.wait()}")
        self.url = line.split()[-1]
        self.port = int(self.url.rpartition(":")[2])

    def _run(self, *arguments):
        command = [self._program, *arguments]
        done = subprocess.run(command, env=self._environment, check=True, capture_output=True, text=True)
        return done.stdout

    def _key(self, scopes):
        options = [option for scope in scopes.split("+") for option in ("--scope", scope)]
        return self._run("keys", "create", *options, scopes).strip()

    def call(self, method, path, body=None):
        headers = {"content-type": "application/json", "if-match": "*"}
        if "admin" in self.keys:
            headers["authorization"] = f"Bearer {self.keys['admin']}"
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, content, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
        return json.loads(text) if text.startswith(b"{") else None

    def stop(self):
        self._process.terminate()
        self._process.communicate()


class Adapter:
    """The process that runs a client."""

    def __init__(self, command):
        self._process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def call(self, request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=ANSWER_SECONDS)
        except (queue.Empty, OSError) as error:
            self._process.kill()
            raise Mismatch(f"no answer to {request}: {error!r}") from error
        if line is None:
            raise Mismatch(f"the adapter ended at {request}")
        return json.loads(line)

    def stop(self):
        try:
            self._process.stdin.close()
            self._process.wait(ANSWER_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._process.kill()
            raise Mismatch(f"the adapter did not end by itself: {error!r}") from error
        if self._process.returncode != 0:
            raise Mismatch(f"the adapter ended with {self._process.returncode}")


def described(result):
    """A result with the members that expectations name."""
    if "slots" in result:
        result["documents"] = [slot["document"] for slot in result["slots"]]
        result["positions"] = [slot["position"] for slot in result["slots"]]
    if "left" in result:
        result["rankers"] = sorted({result["left"], result["right"]})
    if "duel_id" in result:
        result["has_duel"] = result["duel_id"] is not None
    if "asked" in result:
        result["asked"] = [sorted(rankers) for rankers in result["asked"]]
    if "results" in result:
        result["statuses"] = [one["status"] for one in result["results"]]
    return result


def resolved(value, saved):
    """The value with `$name.member` replaced by what an earlier step saved."""
    if isinstance(value, list):
        return [resolved(item, saved) for item in value]
    if isinstance(value, dict):
        return {name: resolved(item, saved) for name, item in value.items()}
    if not (isinstance(value, str) and value.startswith("$")):
        return value
    name, *members = value[1:].split(".")
    found = saved[name]
    for member in members:
        found = found[int(member)] if isinstance(found, list) else found[member]
    return found


def flat(value):
    """A list of lists as one list: pages in a row."""
    if isinstance(value, list) and value and all(isinstance(item, list) for item in value):
        return [item for part in value for item in part]
    return value


def compare(what, found, wanted):
    for name, value in wanted.items():
        if isinstance(value, dict) and isinstance(found.get(name), dict):
            compare(f"{what}.{name}", found[name], value)
        elif found.get(name) != value:
            raise Mismatch(f"{what}.{name} is {found.get(name)!r}, not {value!r}")


class Conformance:
    """Runs exchanges against the servers that they name."""

    def __init__(self, listed, servers, failing):
        self._listed = listed
        self._servers = servers
        self._failing = failing

    def run(self, client, adapter, exchange):
        """Returns `pass`, or `skip` if the client lacks what the exchange needs."""
        proxy = Proxy(self._servers["real"].port) if exchange["server"] == "away" else None
        try:
            name, settings = self._prepared(client, exchange, proxy)
            answer = adapter.call({"do": "connect", "with": {**settings, "experiment": name}})
            if "error" in answer:
                raise Mismatch(f"connect: {answer}")
            if "needs" in exchange and not (answer["ok"] and answer["ok"].get(exchange["needs"])):
                return "skip"
            saved = {"now": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
            for number, step in enumerate(exchange["steps"], 1):
                if step["do"] == "connect":
                    step = {**step, "with": {**settings, "experiment": name, **step["with"]}}
                self._step(f"step {number} ({step['do']})", adapter, step, saved, proxy)
            self._check_after(client, name, exchange)
            return "pass"
        finally:
            if proxy is not None:
                proxy.stop()

    def _prepared(self, client, exchange, proxy):
        """The name of the experiment and the settings of the client."""
        settings = {**self._listed["client"], **exchange.get("client", {})}
        kind = exchange["server"]
        if kind == "failing":
            return exchange["id"], {**settings, "url": f"http://127.0.0.1:{self._failing.port}/{client}"}
        if kind == "none":
            return exchange["id"], {**settings, "url": NOBODY}
        server = self._servers["real" if kind == "away" else kind]
        if "key" in settings:
            settings["key"] = server.keys[settings["key"]]
        name = f"{client}-{exchange['id']}"
        changes = exchange.get("experiment", {})
        if changes is not None:
            server.call("POST", "/v1/experiments", {**self._listed["experiment"], "name": name, **changes})
        if "change" in exchange:
            server.call("PATCH", f"/v1/experiments/{name}", exchange["change"])
        url = server.url if proxy is None else f"http://127.0.0.1:{proxy.port}"
        return name, {**settings, "url": url}

    def _step(self, what, adapter, step, saved, proxy):
        given = resolved(step["with"], saved)
        if step["do"] == "wait":
            time.sleep(given["milliseconds"] / 1000)
            return
        if step["do"] in ("leave", "come_back"):
            getattr(proxy, step["do"])()
            return
        if step["do"] == "compare":
            if flat(given["of"]) != flat(given["to"]):
                raise Mismatch(f"{what}: {given['of']!r} is not {given['to']!r}")
            return
        if step["do"] in ("page", "more"):
            given = {"rankings": self._listed["rankings"], "form": "all", "length": 10, **given}
        answer = adapter.call({"do": step["do"], "with": given})
        if SECRET in json.dumps(answer):
            raise Mismatch(f"{what} shows a secret")
        expected = "error" if "error" in step else "ok"
        if expected not in answer:
            raise Mismatch(f"{what}: {json.dumps(answer)}")
        found = answer[expected] if expected == "error" else described(answer["ok"])
        compare(what, found, step["error"] if expected == "error" else step.get("expect", {}))
        if "as" in step:
            saved[step["as"]] = found

    def _check_after(self, client, name, exchange):
        if "standings" in exchange:
            server = self._servers["real" if exchange["server"] == "away" else exchange["server"]]
            standings = server.call("GET", f"/v1/experiments/{name}/standings")
            compare("standings", standings, exchange["standings"])
        if exchange["server"] != "failing":
            return
        bodies = self._failing.bodies(client, exchange["id"])
        counts = {path: len(found) for path, found in bodies.items()}
        compare("requests", counts, exchange.get("requests", {}))
        for path, wanted in exchange.get("bodies", {}).items():
            if len(bodies.get(path, ())) < len(wanted):
                raise Mismatch(f"requests.{path} are {len(bodies.get(path, ()))}, fewer than {len(wanted)}")
            for found, members in zip(bodies[path], wanted):
                body = json.loads(found or "{}")
                # null stands for a member that is absent
                compare(f"body of {path}", {name: body.get(name) for name in members}, members)
                present = [name for name, value in members.items() if value is None and name in body]
                if present:
                    raise Mismatch(f"body of {path} has {present}")
        refuses = any("refuses" in answer for answer in exchange["answers"].get("feedback", ()))
        for path in ("feedback", "orders"):
            if not refuses and len(set(bodies.get(path, ()))) > 1:
                raise Mismatch(f"{path}: a body that is sent again must not change: {bodies[path]}")


def run_client(name, command, conformance, exchanges):
    """The result of each exchange, and what was wrong."""
    results, findings = {}, []
    adapter = Adapter(command)
    for exchange in exchanges:
        try:
            results[exchange["id"]] = conformance.run(name, adapter, exchange)
        except Mismatch as mismatch:
            results[exchange["id"]] = "FAIL"
            findings.append(f"{name}: {exchange['id']}: {mismatch}")
    try:
        adapter.stop()
    except Mismatch as mismatch:
        findings.append(f"{name}: {mismatch}")
    return results, findings


def print_table(results, exchanges):
    clients = list(results)
    width = max(len(exchange["id"]) for exchange in exchanges)
    print(" " * width, *clients)
    for exchange in exchanges:
        cells = [results[client][exchange["id"]].ljust(len(client)) for client in clients]
        print(exchange["id"].ljust(width), *cells)


def main():
    arguments = argparse.ArgumentParser(description="Runs clients.json with clients.")
    arguments.add_argument("--program", required=True, help="the rankduel server")
    arguments.add_argument("--only", help="run only the exchanges whose id contains this text")
    arguments.add_argument("clients", nargs="+", help="NAME=COMMAND of an adapter")
    chosen = arguments.parse_args()
    listed = json.loads((Path(__file__).parent / "clients.json").read_text())
    exchanges = [exchange for exchange in listed["exchanges"] if (chosen.only or "") in exchange["id"]]
    clients = dict(client.partition("=")[::2] for client in chosen.clients)
    with tempfile.TemporaryDirectory() as folder:
        for server in ("open", "keys"):
            Path(folder, server).mkdir()
        servers = {}
        failing = FailingServer(exchanges).start()
        try:
            servers["real"] = RealServer(chosen.program, f"{folder}/open")
            servers["keys"] = RealServer(chosen.program, f"{folder}/keys", ("admin", "decide", "decide+feedback"))
            conformance = Conformance(listed, servers, failing)
            with concurrent.futures.ThreadPoolExecutor(AT_THE_SAME_TIME) as pool:
                running = {
                    name: pool.submit(run_client, name, command, conformance, exchanges)
                    for name, command in clients.items()
                }
                done = {name: future.result() for name, future in running.items()}
        finally:
            failing.stop()
            for server in servers.values():
                server.stop()
    print_table({name: results for name, (results, _) in done.items()}, exchanges)
    findings = [finding for _, found in done.values() for finding in found]
    print(*findings, sep="\n", end="\n" if findings else "")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
