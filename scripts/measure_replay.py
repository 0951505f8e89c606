"""Measure how often the range of `difference` of a replay holds the truth:

    python3 scripts/measure_replay.py MATRIX LOGGED REPLAYED STEPS [EXPERIMENTS]

Each of EXPERIMENTS (200) experiments makes STEPS steps under the policy LOGGED, with outcomes by the
preference matrix in the file MATRIX, and is replayed under the policy REPLAYED. The truth is the
mean regret of REPLAYED in 400 simulations, less that of the duels that LOGGED issued, both over the
steps of the estimate. *A single run* has that mean and the deviation of the simulations. The programs
are target/release/rankduel and target/release/lab, or RANKDUEL_BINARY and LAB_BINARY.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from http.client import HTTPConnection
from statistics import fmean
from urllib.parse import urlsplit

PROGRAM = os.environ.get("RANKDUEL_BINARY", "target/release/rankduel")
LAB = os.environ.get("LAB_BINARY", "target/release/lab")
STOCK = {"uniform": 1000}
RUNS = 400


class Server:
    def __init__(self, folder: str) -> None:
        environment = {**os.environ, "RANKDUEL_DATABASE_URL": f"sqlite:{folder}/replay.db"}
        command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--log", "error"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        address = urlsplit(self.process.stdout.readline().split()[-1]).netloc
        self.connection = HTTPConnection(address, timeout=120)

    def post(self, path: str, body: object) -> dict:
        headers = {"content-type": "application/json"}
        self.connection.request("POST", f"/v1/experiments{path}", json.dumps(body), headers)
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.status >= 400:
            raise SystemExit(f"{path}: {answer}")
        return answer


class Truth:
    """Mean and deviation of the regret of a policy after any number of steps."""

    def __init__(self, matrix: str, policy: str, steps: int) -> None:
        options = ["--preferences", matrix, "--policy", policy, "--horizon", str(steps), "--runs", str(RUNS)]
        command = [LAB, "simulate", *options, "--format", "json"]
        printed = subprocess.run(command, check=True, capture_output=True).stdout
        self.points = json.loads(printed)["policies"][0]["checkpoints"]

    def after(self, step: int) -> tuple[float, float]:
        above = next(point for point in self.points if point["step"] >= step)
        below = max((point for point in self.points if point["step"] <= step), key=lambda point: point["step"])
        width = above["step"] - below["step"]
        share = (step - below["step"]) / width if width else 0.0
        return tuple(below[key] + share * (above[key] - below[key]) for key in ("mean", "standard_deviation"))


def losses(wins: list[list[float]]) -> list[float]:
    """The Copeland regret of each ranker."""
    rankers = range(len(wins))
    scores = [sum(wins[i][j] > 0.5 for j in rankers) / (len(wins) - 1) for i in rankers]
    return [max(scores) - score for score in scores]


def play(server: Server, name: str, wins: list[list[float]], policy: str, steps: int) -> list[float]:
    """Make an experiment. Returns its cumulative regret after each step."""
    rankers = [f"r{i}" for i in range(len(wins))]
    server.post("", {"name": name, "rankers": rankers, "policy": {"kind": policy}, "conclude_at": None})
    loss, regret = losses(wins), [0.0]
    while len(regret) <= steps:
        count = min(STOCK.get(policy, 10), steps + 1 - len(regret))
        feedback = []
        for duel in server.post(f"/{name}/next-duel", {"count": count})["duels"]:
            left, right = (int(duel[side][1:]) for side in ("left", "right"))
            regret.append(regret[-1] + (loss[left] + loss[right]) / 2)
            if left != right:
                outcome = "left" if random.random() < wins[left][right] else "right"
                feedback.append({"duel_id": duel["duel_id"], "outcome": outcome})
        if feedback:
            server.post(f"/{name}/feedback", {"feedback": feedback})
    return regret


def main() -> None:
    matrix, logged, replayed, steps = sys.argv[1:5]
    experiments = int(sys.argv[5]) if len(sys.argv) > 5 else 200
    random.seed(7)
    with open(matrix, encoding="utf-8") as file:
        wins = [[float(cell) for cell in line.split(",")] for line in file]
    truth = Truth(matrix, replayed, int(steps))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        for number in range(experiments):
            regret = play(server, f"replayed-{number}", wins, logged, int(steps))
            estimate = server.post(f"/replayed-{number}/replay", {"policy": {"kind": replayed}})["regret"]
            if estimate is None:
                continue
            mean, deviation = truth.after(estimate["steps"])
            found, difference = estimate["difference"], mean - regret[estimate["steps"]]
            one = random.gauss(difference, deviation)
            holds = [found["low"] <= value <= found["high"] for value in (difference, one)]
            rows.append((estimate["steps"], difference, found["mean"], found["high"] - found["low"], *holds))
        server.process.kill()
    print(f"{logged} replayed as {replayed}: {len(rows)} of {experiments} have an estimate")
    if not rows:
        return
    taken, difference, mean, width, holds, holds_one = (fmean(column) for column in zip(*rows))
    print(f"  over {taken:.0f} steps: true difference {difference:.0f}, estimate {mean:.0f}, range of {width:.0f}")
    print(f"  the range holds the true mean in {holds:.1%}, a single run in {holds_one:.1%}")


if __name__ == "__main__":
    main()
