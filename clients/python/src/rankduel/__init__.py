"""Client of rankduel: requests the two rankings to interleave for a query, and sends the clicks.

    from rankduel import Rankduel

    rankduel = Rankduel("http://127.0.0.1:7171", experiment="search", control="bm25")
    page = rankduel.page({"bm25": bm25_ids, "neural": neural_ids}, length=10)
    show(page.documents)
    rankduel.clicked(page, [0, 3])

`page` always returns within the deadline. If the service does not answer in time, it returns the
control's ranking.
"""

from .client import Rankduel
from .feedback import Counts
from .pages import Click, Duel, Page, Slot

__all__ = ["Click", "Counts", "Duel", "Page", "Rankduel", "Slot"]
