"""The documents and the judged queries: the Linux manual pages of Debian.

`fetch` downloads the packages `manpages` and `manpages-dev` with apt (root is not needed) and
unpacks them. Nothing of them is part of this repository.

The judgements come from the pages themselves, so that their authors made them:

- The *query* is the one-line summary in the section NAME ("delete a directory").
- The page that it summarizes has the grade 2.
- The pages that its section SEE ALSO lists have the grade 1; all others have 0.

Neither of the two sections is indexed: a ranker sees the names of a page and the rest of its text.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import roff

PACKAGES = ("manpages", "manpages-dev")
GRADE_OF_TARGET = 2
GRADE_OF_NEIGHBOUR = 1
_REFERENCE = re.compile(r"\b([A-Za-z_][\w.-]*) ?\((\d[a-z]*)\)")
_HELD_OUT = ("NAME", "SEE ALSO", "COLOPHON", "AUTHORS", "LIBRARY")


@dataclass
class Document:
    """One manual page."""

    id: str
    names: list[str]
    summary: str
    """Shown below the title. It is the query of this page, so it is not indexed."""
    lead: str
    """The first paragraph of the description."""
    body: str
    """All other text."""
    date: str
    see_also: list[str] = field(default_factory=list)
    mentioned_by: int = 0
    """Number of other pages whose indexed text refers to this one."""

    @property
    def title(self) -> str:
        name, _, section = self.id.rpartition(".")
        return f"{name}({section})"


@dataclass(frozen=True)
class Query:
    text: str
    grades: dict[str, int]
    """Document id → grade, without the zeros."""


@dataclass(frozen=True)
class Corpus:
    documents: dict[str, Document]
    training: list[Query]
    """The learned ranker trains on these."""
    test: list[Query]
    """nDCG is computed, and simulated users search, with these."""


def load(folder: Path) -> Corpus:
    """Read the corpus; fetch it first if the folder does not have it."""
    stored = folder / "documents.json"
    if not stored.exists():
        print("fetching the manual pages …", flush=True)
        documents = read(fetch(folder))
        stored.with_suffix(".part").write_text(json.dumps([asdict(document) for document in documents]))
        stored.with_suffix(".part").rename(stored)
    documents = [Document(**document) for document in json.loads(stored.read_text())]
    training: list[Query] = []
    test: list[Query] = []
    for query in queries(documents):
        half = hashlib.sha256(query.text.encode()).digest()[0] % 2
        (test if half else training).append(query)
    return Corpus({document.id: document for document in documents}, training, test)


def fetch(folder: Path) -> Path:
    """Download and unpack the packages. Returns the folder of the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    if not _download(folder, []):
        # lists of packages of our own: to update the system's takes root
        state, cache = folder / "apt" / "lists", folder / "apt" / "cache"
        (state / "partial").mkdir(parents=True, exist_ok=True)
        (cache / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        options = ["-o", f"Dir::State::lists={state.absolute()}", "-o", f"Dir::Cache={cache.absolute()}"]
        _run(["apt-get", *options, "--quiet=2", "update"], folder)
        if not _download(folder, options):
            raise SystemExit(f"apt-get could not download {' and '.join(PACKAGES)}; the site needs Debian or a derivative")
    for package in sorted(folder.glob("manpages*.deb")):
        _run(["dpkg-deb", "--extract", str(package.absolute()), "unpacked"], folder)
    return folder / "unpacked" / "usr" / "share" / "man"


def _download(folder: Path, options: list[str]) -> bool:
    sandbox = ["-o", "APT::Sandbox::User=root"]  # as root, apt would warn about our folder
    return _run(["apt-get", *options, *sandbox, "--quiet=2", "download", *PACKAGES], folder, check=False)


def _run(command: list[str], folder: Path, check: bool = True) -> bool:
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit(f"there is no {command[0]}: the site's manual pages come from Debian's packages") from None
    if check and done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.returncode == 0


def read(man: Path) -> list[Document]:
    """The pages below a folder. Files that only point to another page are left out."""
    pages = []
    for path in sorted(man.glob("man*/*.gz")):
        if path.is_symlink():
            continue
        page = _page(path)
        if page is not None:
            pages.append(page)
    by_name: dict[tuple[str, str], str] = {}
    for document, _ in pages:
        section = document.id.rpartition(".")[2]
        for name in [document.id.rpartition(".")[0], *document.names]:
            by_name.setdefault((name, section), document.id)
    by_id = {document.id: document for document, _ in pages}
    for document, see_also in pages:
        document.see_also = _references(see_also, by_name, document.id)
        for other in _references(f"{document.lead} {document.body}", by_name, document.id):
            by_id[other].mentioned_by += 1
    return list(by_id.values())


def _page(path: Path) -> tuple[Document, str] | None:
    header, sections = roff.sections(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
    names, dash, summary = " ".join(sections.get("NAME", [])).partition(" - ")
    if not dash or len(header) < 3:
        return None
    description = sections.get("DESCRIPTION", [])
    rest = [text for title, section in sections.items() if title not in (*_HELD_OUT, "DESCRIPTION") for text in section]
    document = Document(
        id=path.name.removesuffix(".gz"),
        names=[name.strip() for name in names.split(",") if name.strip()],
        summary=summary.strip(),
        lead=description[0] if description else "",
        body="\n".join([*description[1:], *rest]),
        date=header[2],
    )
    return document, " ".join(sections.get("SEE ALSO", []))


def _references(text: str, by_name: dict[tuple[str, str], str], own: str) -> list[str]:
    found = [by_name.get((name, section)) for name, section in _REFERENCE.findall(text)]
    return [document for document in dict.fromkeys(found) if document is not None and document != own]


def queries(documents: list[Document]) -> list[Query]:
    """One query for each summary. Pages with the same summary are equally relevant."""
    targets: dict[str, list[Document]] = {}
    for document in documents:
        text = document.summary.lower()
        if len(text.split()) > 1:
            targets.setdefault(text, []).append(document)
    found = []
    for text, pages in targets.items():
        grades = {neighbour: GRADE_OF_NEIGHBOUR for page in pages for neighbour in page.see_also}
        grades.update({page.id: GRADE_OF_TARGET for page in pages})
        found.append(Query(text, grades))
    return found
