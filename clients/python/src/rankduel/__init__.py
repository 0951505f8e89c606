"""Client of rankduel: requests the two rankings to interleave for a query, and sends the clicks.

    from rankduel import Rankduel

    rankduel = Rankduel("http://127.0.0.1:7171", experiment="search", control="bm25")
    rankduel.check()
    page = rankduel.page({"bm25": bm25_ids, "neural": neural_ids}, length=10)
    show(page.documents)
    rankduel.clicked(page.duel_id, [0, 3])

`page` always returns within the deadline. If the service does not answer in time, it returns the
control's ranking.
"""

from .aio import AsyncRankduel
from .client import Rankduel
from .errors import RankduelError
from .feedback import Counts
from .pages import Click, Duel, Page, Slot
from .version import __version__

__all__ = ["AsyncRankduel", "Click", "Counts", "Duel", "Page", "Rankduel", "RankduelError", "Slot", "__version__"]
