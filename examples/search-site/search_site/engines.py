"""The two search engines: tantivy, and FTS5 of SQLite. Both hold their index in memory."""

from __future__ import annotations

import re
import sqlite3
import threading
from typing import Mapping

import tantivy

from .corpus import Corpus, Document

FIELDS = ("names", "lead", "body")
_WORD = re.compile(r"\w+")


def words(query: str) -> list[str]:
    """The words of a query. No character of a query has a meaning in the engines' query languages."""
    return _WORD.findall(query.lower())[:32]


def _fields(document: Document) -> dict[str, str]:
    names = " ".join([*document.names, *(part for name in document.names for part in name.split("_"))])
    return {"names": names, "lead": document.lead, "body": document.body}


class Tantivy:
    """BM25 of tantivy over the fields, with English stems."""

    def __init__(self, corpus: Corpus):
        builder = tantivy.SchemaBuilder()
        # `raw` does not split the text into words
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        for name in FIELDS:
            builder.add_text_field(name, tokenizer_name="en_stem")
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer(num_threads=1)
        for document in corpus.documents.values():
            writer.add_document(tantivy.Document(id=document.id, **_fields(document)))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query: str, boosts: Mapping[str, float], limit: int = 100) -> list[tuple[str, float]]:
        """Documents with any word of the query, with their scores, best first. Searches only the
        fields that `boosts` names."""
        asked = words(query)
        if not asked:
            return []
        parsed = self._index.parse_query(" ".join(asked), list(boosts), field_boosts=dict(boosts))
        hits = self._searcher.search(parsed, limit).hits
        return [(self._searcher.doc(address)["id"][0], score) for score, address in hits]


class Fts5:
    """BM25 of SQLite's FTS5 over the fields, with Porter stems."""

    def __init__(self, corpus: Corpus):
        # one connection, so that all threads share the index in memory
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(
            "CREATE VIRTUAL TABLE pages USING fts5(id UNINDEXED, names, lead, body, tokenize = 'porter unicode61')"
        )
        rows = [(document.id, *_fields(document).values()) for document in corpus.documents.values()]
        self._database.executemany("INSERT INTO pages VALUES (?, ?, ?, ?)", rows)

    def search(self, query: str, limit: int = 100) -> list[tuple[str, float]]:
        """Documents with any word of the query, with their scores, best first."""
        asked = words(query)
        if not asked:
            return []
        match = " OR ".join(f'"{word}"' for word in asked)
        # `rank` is bm25, which is smaller for better rows
        select = "SELECT id, -rank FROM pages WHERE pages MATCH ? ORDER BY rank LIMIT ?"
        with self._lock:
            return self._database.execute(select, (match, limit)).fetchall()
