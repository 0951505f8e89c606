"""The adapter of this client for conformance/check_clients.py: one request and one answer a line.

With the argument `async`, it runs `AsyncRankduel`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import logging
import sys
import traceback
from typing import Any

from rankduel import AsyncRankduel, Duel, Page, Rankduel, RankduelError


class Client:
    """A client under test, and the requests of the driver."""

    def __init__(self, is_async: bool):
        self._is_async = is_async
        self._client: Any = None
        self._report_seconds = 0.0
        self._asked: list[list[str]] = []

    async def do(self, what: str, given: dict[str, Any]) -> dict[str, Any]:
        method = getattr(self, what)
        return await method(**given)  # type: ignore[no-any-return]

    async def _finished(self, value: Any) -> Any:
        return await value if inspect.isawaitable(value) else value

    async def connect(self, deadline_ms: int, report_ms: int, **given: Any) -> dict[str, Any]:
        if self._client is not None:
            await self._finished(self._client.close(0))
        kind = AsyncRankduel if self._is_async else Rankduel
        self._client = kind(deadline=deadline_ms / 1000, **given)
        self._report_seconds = report_ms / 1000
        return {"queue": True}

    async def check(self) -> dict[str, Any]:
        return {"rankers": await self._finished(self._client.check())}

    async def next_duel(self, **given: Any) -> dict[str, Any]:
        return _as_json(await self._finished(self._client.next_duel(**given)))

    async def page(self, **given: Any) -> dict[str, Any]:
        page = await self._finished(self._client.page(**self._arguments(given)))
        return {**_as_json(page), "asked": self._asked}

    async def more(self, of: str, **given: Any) -> dict[str, Any]:
        page = await self._finished(self._client.more(_read(of), **self._arguments(given)))
        return {**_as_json(page), "asked": self._asked}

    def _arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        self._asked = []
        rankings = given["rankings"]
        failing, missing, others = (given.pop(name, []) for name in ("failing", "missing", "others"))
        given["pinned"] = [(pin["position"], pin["document"]) for pin in given.get("pinned", [])]
        if given.pop("form") == "all":
            return given

        def search(rankers: list[str]) -> dict[str, list[str]]:
            self._asked.append(list(rankers))
            if set(rankers) & set(failing):
                raise ApplicationError
            return {ranker: rankings[ranker] for ranker in {*rankers, *others} - set(missing)}

        async def awaited(rankers: list[str]) -> dict[str, list[str]]:
            return search(rankers)

        return {**given, "rankings": awaited if self._is_async else search}

    async def report_clicks(self, **given: Any) -> dict[str, Any]:
        sent = self._client.report_clicks(**given, seconds=self._report_seconds)
        return {"status": await self._finished(sent)}

    async def report_outcome(self, **given: Any) -> dict[str, Any]:
        sent = self._client.report_outcome(**given, seconds=self._report_seconds)
        return {"status": await self._finished(sent)}

    async def report_metrics(self, **given: Any) -> dict[str, Any]:
        sent = self._client.report_metrics(**given, seconds=self._report_seconds)
        return {"status": await self._finished(sent)}

    async def report_orders(self, orders: list[Any]) -> dict[str, Any]:
        return {"results": await self._finished(self._client.report_orders(orders, seconds=self._report_seconds))}

    async def queue_clicks(self, clicks: list[Any], final: bool, **of: Any) -> dict[str, Any]:
        self._client.clicked(_of(**of), clicks, final=final)
        return {}

    async def queue_outcome(self, outcome: str, **of: Any) -> dict[str, Any]:
        self._client.outcome(_of(**of), outcome)
        return {}

    async def queue_metrics(self, metrics: Any, **of: Any) -> dict[str, Any]:
        self._client.measured(_of(**of), metrics)
        return {}

    async def flush(self, milliseconds: int) -> dict[str, Any]:
        return {"flushed": await self._finished(self._client.flush(milliseconds / 1000))}

    async def close(self, milliseconds: int) -> dict[str, Any]:
        return {"flushed": await self._finished(self._client.close(milliseconds / 1000))}

    async def counts(self) -> dict[str, Any]:
        return dataclasses.asdict(self._client.counts())


class ApplicationError(Exception):
    """A failure of the search that the client calls."""


def _read(text: str) -> Duel | Page:
    return Page.from_json(text) if "slots" in json.loads(text) else Duel.from_json(text)


def _of(of: str | None = None, duel_id: str | None = None) -> Duel | Page | str | None:
    return duel_id if of is None else _read(of)


def _as_json(result: Duel | Page) -> dict[str, Any]:
    return {**dataclasses.asdict(result), "json": result.to_json()}


async def answer(client: Client, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": await client.do(request["do"], request["with"])}
    except RankduelError as error:
        members = ("reason", "status", "retry_after", "retryable")
        return {"error": {member: getattr(error, member) for member in members}}
    except ApplicationError:
        return {"error": {"reason": "application"}}
    except ValueError:
        return {"error": {"reason": "usage", "detail": traceback.format_exc()}}


async def main() -> None:
    logging.getLogger("rankduel").setLevel(logging.CRITICAL)
    client = Client("async" in sys.argv[1:])
    for line in sys.stdin:
        print(json.dumps(await answer(client, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
