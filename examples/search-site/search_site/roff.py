"""Manual pages as text: the part of roff and of its `man` macros that the Linux pages use."""

from __future__ import annotations

import re
import shlex

_QUOTES = {"aq": "'", "oq": "'", "cq": "'", "dq": '"', "lq": '"', "rq": '"'}
_NAMED = {**_QUOTES, "em": "-", "en": "-", "bu": "", "co": "(c)", "ha": "^"}
_ESCAPE = re.compile(r"\\(?:f(?:\(..|\[[^]]*\]|.)|\*?\(..|\*?\[[^]]*\]|s[+-]?\d|[&/,|^%:c)]|.)")
_ALTERNATING = {"BR", "RB", "BI", "IB", "RI", "IR"}
_WITH_TEXT = _ALTERNATING | {"B", "I", "SM", "SB", "SS", "TP", "IP", "UR", "MT", "OP"}


def sections(source: str) -> tuple[list[str], dict[str, list[str]]]:
    """The arguments of `.TH`, and the paragraphs of each section, by its title."""
    header: list[str] = []
    found: dict[str, list[str]] = {}
    paragraphs: list[str] = []
    words: list[str] = []

    def end_paragraph() -> None:
        text = " ".join(" ".join(words).split())
        if text:
            paragraphs.append(text)
        words.clear()

    for line in source.splitlines():
        if line.startswith(("'\\\"", ".\\\"", '\\"', "'", ".if", ".ie", ".el", ".de", "..")):
            continue
        if not line.startswith("."):
            words.append(_text(line))
            continue
        macro, _, rest = line[1:].strip().partition(" ")
        if macro == "TH":
            header = _arguments(rest)
        elif macro == "SH":
            end_paragraph()
            paragraphs = found.setdefault(" ".join(_arguments(rest)).upper(), [])
        elif macro in ("PP", "P", "LP", "SS", "TP", "IP", "TQ"):
            end_paragraph()
        if macro in _WITH_TEXT and rest:
            words.append(("" if macro in _ALTERNATING else " ").join(_arguments(rest)))
    end_paragraph()
    return header, found


def _arguments(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = lexer.escape = ""
    lexer.quotes = '"'
    try:
        return [_text(argument) for argument in lexer]
    except ValueError:  # a quotation mark without its partner
        return [_text(text.replace('"', ""))]


def _text(source: str) -> str:
    return _ESCAPE.sub(_replacement, source.partition('\\"')[0])


def _replacement(escape: re.Match[str]) -> str:
    text = escape[0][1:]
    if text.startswith(("(", "[")):
        return _NAMED.get(text.strip("([]"), " ")
    return {"-": "-", "e": "\\", " ": " ", "~": " ", "0": " ", "'": "'", "`": "`", ".": "."}.get(text, "")
