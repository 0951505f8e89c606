"""Client of rankduel: which two rankings to interleave for the next query, and what was clicked.

    from rankduel import Rankduel

    rankduel = Rankduel("http://127.0.0.1:7171", experiment="search", control="bm25")
    page = rankduel.page({"bm25": bm25_ids, "neural": neural_ids}, length=10)
    show(page.documents)
    rankduel.clicked(page, [0, 3])

Whatever happens to the service, `page` answers within the deadline: with the control's ranking when it must.
"""

from .client import Rankduel
from .feedback import Counts
from .pages import Click, Duel, Page, Slot

__all__ = ["Click", "Counts", "Duel", "Page", "Rankduel", "Slot"]
