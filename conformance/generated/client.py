"""Create, duel, page, feedback and verdict with the client of openapi-python-client."""

import sys

from rankduel_api import Client
from rankduel_api.api.duels import feedback, interleave, next_duel
from rankduel_api.api.experiments import change, create, list_, read
from rankduel_api.api.results import verdict
from rankduel_api.models import (
    ConcludeAtChange, ConcludeAt, Experiment, ExperimentChange, FeedbackStatus, InterleaveBody, Metric,
    NewExperimentBody, OnDrift, One, Outcome, PolicySpec, PolicySpecKind, Receipt, Status, VerdictState,
)

url, name = sys.argv[1:]
with Client(base_url=url) as client:
    policy = PolicySpec(kind=PolicySpecKind("d-ts-verdict"))
    at = ConcludeAt(max_duels=10_000)
    body = NewExperimentBody(
        name=name, rankers=["a", "b", "c"], policy=policy, conclude_at=at, owner="generated", answer_window_seconds=0,
        control="a", drift=OnDrift.OFF, metrics=[Metric(name="latency_ms", cap=1000, limit=400)],
    )
    made = create.sync(client=client, body=body)
    assert isinstance(made, Experiment) and made.status is Status.RUNNING and (made.owner, made.control) == ("generated", "a"), made
    clicked = decided = 0
    while clicked + decided < 10:
        duel = next_duel.sync(name, client=client)
        if duel.self_duel:
            continue
        if decided < clicked:
            answer = One(duel_id=duel.duel_id, outcome=Outcome.LEFT if duel.left == "a" else Outcome.RIGHT)
            decided += 1
        else:
            lists = {"left": ["d1", "d2", "d3"], "right": ["d3", "d1", "d2"]}
            page = interleave.sync(name, client=client, body=InterleaveBody(duel_id=duel.duel_id, length=3, **lists))
            assert len(page.slots) == 3, page
            answer = One(duel_id=page.duel_id, clicks=[0])
            clicked += 1
        receipt = feedback.sync(name, client=client, body=answer)
        assert isinstance(receipt, Receipt) and receipt.status is FeedbackStatus.RECORDED, receipt
    found = verdict.sync(name, client=client)
    assert found.state is VerdictState.OPEN and found.duels == 10, found
    changed = change.sync(
        name, client=client, if_match="*", body=ExperimentChange(conclude_at=ConcludeAtChange(max_duels=10))
    )
    assert isinstance(changed, Experiment) and changed.conclude_at.max_duels == 10, changed
    while read.sync(name, client=client).status is not Status.CONCLUDED:
        pass
    concluded = verdict.sync(name, client=client).concluded
    assert concluded.automatic and concluded.winner in ("a", "b", "c"), concluded
    refused = list_.sync(client=client, cursor="nowhere")
    assert refused.errors[0].name == "cursor", refused
    missing = read.sync("missing", client=client)
    assert missing.type_ == "/problems/experiment-not-found", missing
