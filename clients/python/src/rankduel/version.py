"""The version of the client, and whether a server is too old for it."""

from __future__ import annotations

import re

from .errors import RankduelError

__version__ = "0.1.0"


def check_server(version: str | None) -> None:
    """Raises `RankduelError` if the server, with the `version` of its answer, is older than this
    client."""
    if version is not None and _release(version) < _release(__version__):
        detail = f"the server has version {version}, and this client {__version__}: upgrade the server"
        raise RankduelError("server-too-old", detail, 200)


def _release(version: str) -> tuple[int, ...]:
    """Major and minor version; changes of the third number always fit."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})\.", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)
