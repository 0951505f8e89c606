"""The error of a request."""

from __future__ import annotations


class RankduelError(Exception):
    """A request without a successful answer."""

    def __init__(
        self,
        reason: str,
        detail: str,
        status: int | None = None,
        retry_after: float | None = None,
    ):
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        """`timeout`, `unreachable`, `not-rankduel`, `server-too-old`, `resting`, `closed`,
        `control-unknown`, `ranker-failed`, the slug of the problem such as `duel-expired`, or else `status-502`."""
        self.detail = detail
        self.status = status
        """The status of the answer, if there was one."""
        self.retry_after = retry_after
        """In seconds, if the answer names it."""

    @property
    def is_transient(self) -> bool:
        """Whether the server did not answer, or failed: the same request may succeed in a moment."""
        if self.status is None:
            return self.reason in ("timeout", "unreachable")
        return self.reason == "not-rankduel" or self.status >= 500 or self.status in (408, 429)

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later. Besides transient errors, these are 401 and
        403: the key may be corrected."""
        return self.is_transient or self.status in (401, 403)
