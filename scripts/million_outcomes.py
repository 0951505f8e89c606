"""Write an export with the given numbers of rankers and outcomes, and a policy (uniform).

    million_outcomes.py RANKERS OUTCOMES [POLICY]

The format is that of docs/operations.md, "The format of an export". The larger the distance between
two rankers, the more often the better one wins. Pairs are drawn uniformly. The same call writes the
same bytes.
"""

import hashlib
import json
import random
import sys

START_MS = 1_790_000_000_000


def main() -> None:
    rankers, outcomes = int(sys.argv[1]), int(sys.argv[2])
    policy = sys.argv[3] if len(sys.argv) > 3 else "uniform"
    chance = random.Random(1)
    digest = hashlib.sha256()

    def write(line: dict, counted: bool = True) -> None:
        text = json.dumps(line, separators=(",", ":")) + "\n"
        if counted:
            digest.update(text.encode())
        sys.stdout.write(text)

    spec = {
        "rankers": [{"id": f"ranker-{index:03}"} for index in range(rankers)],
        "policy": {"kind": policy},
        "ties": "skip",
        "duel_ttl_seconds": 3600,
        "seed": 1,
    }
    write({
        "rankduel_export": 1, "name": "many", "spec": spec, "seed": 1, "status": "running", "winner": None, "version": 1,
        "head": outcomes, "created_at": START_MS, "updated_at": START_MS, "archived_at": None, "pruned_to": 0,
    })
    for position in range(1, outcomes + 1):
        first, second = chance.sample(range(rankers), 2)
        gap = (second - first) / rankers
        answer = "first" if chance.random() < 0.5 + 0.4 * gap else "second"
        now = START_MS + position
        write({
            "position": position, "nonce": f"{position:032x}", "recorded_at": now,
            "outcome": {
                "first": first, "second": second, "first_left": chance.random() < 0.5, "answer": answer, "batch": None,
                "ticket": 0, "chosen_at": position - 1, "issued_at": now,
            },
        })
    write({"entries": outcomes, "sha256": digest.hexdigest()}, counted=False)


main()
