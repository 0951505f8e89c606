"""The client for asyncio. Its requests run in threads: one for each search that waits for an
answer, for at most the deadline."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
from typing import Any, Awaitable, Callable, Sequence, TypeVar, Union

from .client import Made, Metrics, Order, Rankduel, made_of, rankers_of, shown
from .feedback import Counts
from .pages import Click, Duel, Lists, Page, Window, control_page

AsyncRankings = Union[Lists, Callable[[Sequence[str]], Awaitable[Lists]]]
"""The document ids of every ranker, best first; or a coroutine function that returns those of the
rankers that it is called with."""


T = TypeVar("T")


class AsyncRankduel:
    """`Rankduel` with coroutines. It has the same arguments and the same results.

    Up to `connections` searches (32) wait for an answer at the same time, each in a thread of the
    client's own; further searches wait for a thread. Reports use the threads of
    `asyncio.to_thread`, so they do not delay searches.
    """

    def __init__(self, url: str, *, experiment: str, control: str, **options: Any):
        self._client = Rankduel(url, experiment=experiment, control=control, **options)
        self._control = control
        threads: int = options.get("connections", 32)
        self._searches = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="rankduel-search")

    async def _in_thread(self, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        bound = functools.partial(call, *arguments, **options)
        try:
            result = asyncio.get_running_loop().run_in_executor(self._searches, bound)
        except RuntimeError:  # the client was closed, so the call does not wait
            return bound()
        return await result

    async def check(self, seconds: float = 5.0) -> list[str]:
        """See `Rankduel.check`."""
        return await asyncio.to_thread(self._client.check, seconds)

    async def next_duel(self, *, unit: str | None = None, segment: str | None = None) -> Duel:
        """See `Rankduel.next_duel`."""
        return await self._in_thread(self._client.next_duel, unit=unit, segment=segment)

    async def page(
        self,
        rankings: AsyncRankings,
        *,
        length: int = 10,
        offset: int = 0,
        pinned: Sequence[tuple[int, str]] = (),
        unit: str | None = None,
        segment: str | None = None,
    ) -> Page:
        """See `Rankduel.page`."""
        window = Window(length, offset, pinned, unit, segment)
        if not callable(rankings):
            return await self._in_thread(self._client.page, rankings, **vars(window))
        duel = await self._in_thread(self._client._duel_for, window)
        return await self._page_of_pair(duel, rankings, window)

    async def more(
        self,
        of: Page | Duel,
        rankings: AsyncRankings,
        *,
        length: int = 10,
        offset: int = 0,
        pinned: Sequence[tuple[int, str]] = (),
        unit: str | None = None,
        segment: str | None = None,
    ) -> Page:
        """See `Rankduel.more`."""
        window = Window(length, offset, pinned, unit, segment)
        if not callable(rankings):
            return await self._in_thread(self._client.more, of, rankings, **vars(window))
        return await self._page_of_pair(of, rankings, window)

    async def _page_of_pair(
        self,
        of: Page | Duel,
        make: Callable[[Sequence[str]], Awaitable[Lists]],
        window: Window,
    ) -> Page:
        rankers = rankers_of(of)
        made: Made = {}
        if rankers:
            try:
                made = made_of(await make(rankers))
            except Exception as error:
                made = dict.fromkeys(rankers, error)
        page = await self._in_thread(self._client._interleaved, of, made, window)
        if isinstance(page, Page):
            return page
        if not isinstance(made.get(self._control), list):
            made = made_of(await make([self._control]))
        return control_page(self._control, shown(self._control, made), page, window)

    def clicked(self, of: Page | str | None, clicks: Sequence[Click], *, final: bool = True) -> None:
        """See `Rankduel.clicked`. It does not wait, so it is not a coroutine."""
        self._client.clicked(of, clicks, final=final)

    def outcome(self, of: Duel | Page | str | None, outcome: str) -> None:
        """See `Rankduel.outcome`. It does not wait, so it is not a coroutine."""
        self._client.outcome(of, outcome)

    def measured(self, of: Duel | Page | str | None, metrics: Metrics) -> None:
        """See `Rankduel.measured`. It does not wait, so it is not a coroutine."""
        self._client.measured(of, metrics)

    async def report_clicks(
        self, of: Page | str | None, clicks: Sequence[Click], *, final: bool = True, seconds: float = 10.0
    ) -> str:
        """See `Rankduel.report_clicks`."""
        report = self._client.report_clicks
        return await asyncio.to_thread(report, of, clicks, final=final, seconds=seconds)

    async def report_outcome(
        self, of: Duel | Page | str | None, outcome: str, *, seconds: float = 10.0
    ) -> str:
        """See `Rankduel.report_outcome`."""
        return await asyncio.to_thread(self._client.report_outcome, of, outcome, seconds=seconds)

    async def report_metrics(
        self, of: Duel | Page | str | None, metrics: Metrics, *, seconds: float = 10.0
    ) -> str:
        """See `Rankduel.report_metrics`."""
        return await asyncio.to_thread(self._client.report_metrics, of, metrics, seconds=seconds)

    async def report_orders(self, orders: Sequence[Order], *, seconds: float = 10.0) -> list[dict[str, Any]]:
        """See `Rankduel.report_orders`."""
        return await asyncio.to_thread(self._client.report_orders, orders, seconds=seconds)

    def counts(self) -> Counts:
        """See `Rankduel.counts`."""
        return self._client.counts()

    async def flush(self, seconds: float = 10.0) -> bool:
        """See `Rankduel.flush`."""
        return await asyncio.to_thread(self._client.flush, seconds)

    async def close(self, seconds: float = 10.0) -> bool:
        """See `Rankduel.close`."""
        flushed = await asyncio.to_thread(self._client.close, seconds)
        self._searches.shutdown(wait=False)
        return flushed

    async def __aenter__(self) -> AsyncRankduel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
