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


@pytest.mark.parametrize("method", ["team-draft", "balanced", "probabilistic", "optimized"])
def test_no_credit_is_zero_without_a_sign(method: str) -> None:
    page = db.interleave(method, LEFT, RIGHT, length=4, seed=7)
    for clicks in [[], ["c"], ["b"], page.documents]:
        assert "-0" not in repr(page.credit(clicks))


def test_a_user_clicks_by_grades() -> None:
    assert db.click_models()[:2] == ["perfect", "navigational"]
    for name in db.click_models():
        assert repr(db.ClickModel(name, 5)).startswith(f"<ClickModel {name}")
    perfect = db.ClickModel("perfect", grades=2)
    assert perfect.click([0, 1, 0, 1]) == [1, 3] and perfect.click([]) == []
    # navigational with two grades: a relevant document is clicked with 0.95, another with 0.05
    user = db.ClickModel("navigational", 2, seed=1)
    pages = [user.click([1]) for _ in range(4000)]
    assert abs(sum(map(len, pages)) / 4000 - 0.95) < 0.02
    with pytest.raises(ValueError, match="`grades` is 7"):
        db.ClickModel("perfect", 7)
    with pytest.raises(ValueError, match="`model`: there is no click model `bots`"):
        db.ClickModel("bots", 2)


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
