"""Interleaving and credit."""

from typing import Any

import dueling_bandits as db
import pytest

LEFT, RIGHT = ["a", "b", "c", "d"], ["c", "a", "e", "f"]


@pytest.mark.parametrize("method", ["team-draft", "balanced", "probabilistic:tau=2", "optimized"])
def test_a_page_shows_documents_of_both_rankings(method: str) -> None:
    page = db.interleave(method, LEFT, RIGHT, length=4, seed=7)
    assert len(page) == 4 == len(page.slots) and page.is_informative
    assert set(page.documents) <= set(LEFT + RIGHT)
    assert [slot.position for slot in page.slots] == [0, 1, 2, 3]
    again = db.interleave(method, LEFT, RIGHT, length=4, seed=(7).to_bytes(32, "little"))
    assert again.documents == page.documents
    second = db.interleave(method, LEFT, RIGHT, length=2, seed=7, offset=2)
    assert second.documents == page.documents[2:]
    assert second.credit([page.documents[0]]).creditable + second.credit([0]).ignored <= 1


def test_the_page_is_that_of_the_rust_crate() -> None:
    """The page and the credit of the example of the crate `interleaving`, with this seed."""
    page = db.interleave("team-draft", LEFT, RIGHT, length=4, seed=bytes([7] * 32))
    credit = page.credit(["c"])
    assert (credit.outcome, credit.share) == ("right", 1 - 1.0) and credit.creditable == 1


def test_clicks_earn_credit() -> None:
    page = db.interleave("team-draft", LEFT, RIGHT, length=4, seed=1, pinned={0: "ad"})
    assert page.documents[0] == "ad" and page.slots[0].pinned and page.slots[0].team is None
    nothing = page.credit([])
    assert nothing.outcome is None and nothing.share == 0.5
    ignored = page.credit(["ad", 0])
    assert ignored.outcome is None and ignored.ignored == 1
    slot = next(slot for slot in page.slots if slot.team == "left" and slot.competitive)
    assert page.credit([slot.document]).outcome == page.credit([slot.position]).outcome == "left"
    assert page.credit([slot.position, slot.document]).left == 1


def test_wrong_requests_are_refused_with_the_words_of_the_crate() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"method": "zipper"}, "there is no interleaving method `zipper`"),
        ({"length": 0}, "`length` is 0; a page has at least 1 result"),
        ({"offset": 999}, "is more than 1000"),
        ({"pinned": {1000: "x"}}, "positions are 0 to 999"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            db.interleave(**{"method": "team-draft", "left": LEFT, "right": RIGHT, **arguments})
    page = db.interleave("team-draft", LEFT, RIGHT, length=4)
    with pytest.raises(ValueError, match="position 4 was not shown: the list has 4 results"):
        page.credit([4])
    with pytest.raises(ValueError, match="document `z` was not shown"):
        page.credit(["z"])
