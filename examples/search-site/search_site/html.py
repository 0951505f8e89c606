"""The pages of the site as HTML."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from .corpus import Corpus, Document
from .site import Results

EXAMPLES = ("delete a directory", "wait for a signal", "format of the password file")

STYLE = """
:root { color-scheme: light dark; --muted: light-dark(#5a6270, #a4adbb); --link: light-dark(#1a4fa3, #8ab4f8); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h1 a { color: inherit; text-decoration: none; }
form { display: flex; gap: .5rem; } input { flex: 1; } input, button { font: inherit; padding: .4rem .8rem; }
ol { padding: 0; list-style: none; } li { margin: 1.1rem 0; } a { color: var(--link); } li a { font-size: 1.1rem; }
li p, .note { margin: 0; color: var(--muted); } .note { font-size: .85rem; } pre { white-space: pre-wrap; font: inherit; }
"""

# A click is sent before the browser leaves the page, so that it need not wait for the answer.
SCRIPT = """
const results = document.querySelector("[data-duel-id]");
const report = event => {
  const link = event.target.closest("a[data-position]");
  if (!results || !link) return;
  navigator.sendBeacon("/feedback", JSON.stringify({
    duel_id: results.dataset.duelId, clicks: [Number(link.dataset.position)], final: false}));
};
document.addEventListener("click", report);
document.addEventListener("auxclick", report);
document.querySelector("[data-document]")?.addEventListener("click", async ({target}) => {
  const answer = await fetch("/order", {method: "POST", body: JSON.stringify({document: target.dataset.document})});
  target.textContent = answer.ok ? "Ordered" : "Please try again";
});
"""


def _frame(title: str, query: str, content: str) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><link rel="stylesheet" href="/site.css"></head><body>
<h1><a href="/">Linux manual pages</a></h1>
<form action="/">
<input name="q" value="{escape(query)}" aria-label="Query" maxlength="200" autofocus><button>Search</button>
</form>
{content}<script src="/site.js"></script></body></html>
"""


def home() -> str:
    links = ", ".join(f'<a href="/?q={quote(example)}">{example}</a>' for example in EXAMPLES)
    return _frame("Linux manual pages", "", f"<p>Describe what you need, for instance: {links}.</p>")


def results(found: Results, corpus: Corpus) -> str:
    if not found.documents:
        advice = "<p>No page matches. Try other or more general words.</p>"
        return _frame(found.query, found.query, advice)
    items = "".join(_item(position, corpus.documents[id]) for position, id in enumerate(found.documents))
    duel = f' data-duel-id="{escape(found.duel_id)}"' if found.duel_id else ""
    # for the reader of the tutorial; a site would not tell its visitors
    source = "chosen by rankduel" if found.fallback is None else f"the control ranking ({found.fallback})"
    return _frame(found.query, found.query, f'<ol{duel}>{items}</ol><p class="note" id="source">This page: {escape(source)}.</p>')


def _item(position: int, document: Document) -> str:
    link = f'<a href="/page/{quote(document.id)}" data-position="{position}">{escape(document.title)}</a>'
    lead = document.lead if len(document.lead) <= 200 else document.lead[:200].rpartition(" ")[0] + " …"
    return f'<li>{link}<p>{escape(document.summary)}</p><p class="note">{escape(lead)}</p></li>'


def page(document: Document, sells: bool = False) -> str:
    text = f"<h2>{escape(document.title)}</h2><p><b>{escape(document.summary)}</b></p>"
    if sells:
        text += f'<p><button data-document="{escape(document.id)}">Order a print</button></p>'
    body = escape(document.lead) + "\n\n" + escape(document.body.replace("\n", "\n\n"))
    return _frame(document.title, "", f"{text}<pre>{body}</pre>")


def unavailable(query: str) -> str:
    return _frame(query, query, "<p>The search does not work at the moment. Please try again.</p>")
