"""Files of lines that grow, with the position up to which they were read."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from typing import BinaryIO

CHUNK = 1024 * 1024
"""Bytes that are read at once, and the longest line."""
EMPTIED_FROM = 64 * 1024
"""A spool of fewer bytes is not emptied: each emptying is a write."""


class Lines:
    """The whole lines of a file from the first one that was not passed. The position is in a file of
    its own, so a restart goes on there. The file may be rotated: what is left of it is read before
    the new one, unless the side-car was down meanwhile."""

    def __init__(self, path: Path, position: Path):
        self._path = path
        self._position = position
        self._file: BinaryIO | None = None
        self._at = 0
        self._next = 0

    def read(self, most: int) -> list[bytes]:
        """At most this many lines. The same ones again, until `advance`."""
        file = self._opened()
        if file is None:
            return []
        size = os.fstat(file.fileno()).st_size
        if size < self._at:
            self._at = 0  # somebody has emptied the file
        file.seek(self._at)
        chunk = file.read(CHUNK)
        whole = chunk[: chunk.rfind(b"\n") + 1]
        if not whole:
            rotated = self._is_rotated(file)
            if len(chunk) == CHUNK or (rotated and chunk):
                whole = chunk  # a line that is too long, or the unfinished end of a rotated file
            elif rotated:
                file.close()
                self._file, self._at = None, 0
                return self.read(most)
        lines = io.BytesIO(whole).readlines()[:most]
        self._next = self._at + sum(map(len, lines))
        return lines

    def advance(self) -> None:
        """Pass the lines that `read` has returned last."""
        self._at = self._next
        self._save()

    def waiting(self) -> int:
        """Bytes that were not passed."""
        try:
            return max(0, self._path.stat().st_size - self._at)
        except OSError:
            return 0

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> BinaryIO | None:
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return None
            self._at = self._saved(os.fstat(self._file.fileno()).st_ino)
        return self._file

    def _is_rotated(self, file: BinaryIO) -> bool:
        try:
            return self._path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except OSError:
            return False

    def _saved(self, inode: int) -> int:
        try:
            saved = json.loads(self._position.read_text())
            return int(saved["offset"]) if saved["inode"] == inode else 0
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def _save(self) -> None:
        # not synced: after a crash, lines are sent again, which is safe
        inode = os.fstat(self._file.fileno()).st_ino if self._file is not None else 0
        new = self._position.with_suffix(".new")
        new.write_text(json.dumps({"inode": inode, "offset": self._at}))
        new.replace(self._position)


class Full(Exception):
    """The spool has no space."""


class Spool(Lines):
    """A queue in a file: lines are appended at its end and read from its start. It survives a restart
    and has a limit in bytes. Once all of it was read, it is emptied."""

    def __init__(self, path: Path, position: Path, limit: int):
        super().__init__(path, position)
        self._limit = limit
        self._lock = threading.RLock()
        self._end = path.open("ab", buffering=0)
        if self._end.tell() > 0:
            self._end.write(b"\n")  # a crash may have left half a line; an empty line is passed over
        self._opened()

    def append(self, lines: list[bytes]) -> None:
        """Raises `Full`, or an `OSError` of the disk. Afterwards the lines are durable."""
        text = b"".join(lines)
        with self._lock:
            if self.waiting() + len(text) > self._limit:
                raise Full
            start = self._end.seek(0, os.SEEK_END)
            try:
                written = self._end.write(text)
                if written != len(text):
                    raise OSError("the disk is full")
                os.fsync(self._end.fileno())
            except OSError:
                self._end.truncate(start)
                raise

    def read(self, most: int) -> list[bytes]:
        with self._lock:
            return super().read(most)

    def advance(self) -> None:
        with self._lock:
            super().advance()
            if self._at >= EMPTIED_FROM and self.waiting() == 0:
                self._end.truncate(0)
                self._at = 0
                self._save()

    def waiting(self) -> int:
        with self._lock:
            return super().waiting()

    def close(self) -> None:
        super().close()
        self._end.close()
