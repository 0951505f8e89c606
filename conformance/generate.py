#!/usr/bin/env python3
"""Generates interleaving.json: conformance vectors for interleaving methods, in exact arithmetic.

    python3 conformance/generate.py > conformance/interleaving.json

This program implements only the definitions in docs/interleaving.md and shares no code with the
program that it checks. It computes drafts by recursion over the coins, probabilistic credit by
enumeration of all 2^L assignments, and linear programs by enumeration of all vertices. It requires
only Python 3.9.
"""

import itertools
import json
import math
import sys
from fractions import Fraction

HALF = Fraction(1, 2)
VERSION = "1.1.0"


# --- the two lists --------------------------------------------------------------------------------

def cut(case):
    """The left list, the right list and the uncredited tail, after pins, repeats and the depth policy."""
    pinned = [pin["document"] for pin in case.get("pinned", [])]
    left, right = ([d for d in dict.fromkeys(case[side]) if d not in pinned] for side in ("left", "right"))
    policy = case["method"].get("depth_policy", "min")
    common = min(len(left), len(right))
    if policy == "uncut" and common > 0:
        return left, right, [], True
    longer = left if len(left) > len(right) else right
    tail = []
    if policy == "max" or common == 0:
        tail = [d for d in longer[common:] if d not in left[:common] and d not in right[:common]]
    return left[:common], right[:common], tail, False


def merge_pins(pages, case):
    """Puts pinned documents at their positions; a pin below the end comes last."""
    length, pins = case["length"], sorted(case.get("pinned", []), key=lambda pin: pin["position"])
    merged = {}
    for page, probability in pages.items():
        drafted, waiting, shown = list(page), list(pins), []
        while len(shown) < length and (drafted or waiting):
            if waiting and (waiting[0]["position"] <= len(shown) or not drafted):
                shown.append((waiting.pop(0)["document"], None, False))
            else:
                shown.append(drafted.pop(0))
        merged[tuple(shown)] = merged.get(tuple(shown), 0) + probability
    return merged


def drafts(case):
    """{((document, team, competitive), ...): probability}"""
    left, right, tail, uncut = cut(case)
    above = sum(pin["position"] < case["length"] for pin in case.get("pinned", []))
    length = case["length"] - above
    method = case["method"]
    make = {"team-draft": team_draft, "balanced": balanced, "probabilistic": probabilistic,
            "optimized": optimized}[method["kind"]]
    pages = {}
    for page, probability in make(method, left, right, length, uncut):
        page = page[:length]
        rest = [(d, "left" if d in case["left"] else "right", False) for d in tail]
        page = tuple(page + rest[:length - len(page)])
        pages[page] = pages.get(page, 0) + probability
    assert sum(pages.values()) == 1, case
    return merge_pins(pages, case)


def top(ranking, shown):
    return next((d for d in ranking if d not in shown), None)


# --- team draft -----------------------------------------------------------------------------------

def team_draft(method, left, right, length, uncut):
    shared = method.get("shared", "collapse")
    lists = {"left": left, "right": right}
    prefix = []
    if shared == "ignore-prefix":
        for a, b in zip(left, right):
            if a != b:
                break
            prefix.append((a, "both", False))

    def extend(page, probability):
        if len(page) >= length:
            yield page, probability
            return
        shown = [d for d, _, _ in page]
        a, b = top(left, shown), top(right, shown)
        if a is None and b is None:
            yield page, probability
        elif a is None or b is None:
            slot = (a or b, "left" if b is None else "right", uncut)
            yield from extend(page + [slot], probability)
        elif a == b and shared == "collapse":
            yield from extend(page + [(a, "both", False)], probability)
        else:
            for first, second in (("left", "right"), ("right", "left")):
                pick = {"left": a, "right": b}[first]
                counts = not (shared == "ignore-round" and a == b)
                if shared == "collapse" and len(page) + 1 == length:
                    counts = False
                round_ = [(pick, first, counts)]
                answer = top(lists[second], shown + [pick])
                # Does the second pick exist for either first side?
                both = all(top(lists[s], shown + [{"left": b, "right": a}[s]]) for s in ("left", "right"))
                if answer is not None:
                    round_.append((answer, second, counts and (both or uncut)))
                yield from extend((page + round_)[:length], probability * HALF)

    for page, probability in extend(prefix[:length], Fraction(1)):
        if shared == "ignore-same-rank":
            page = [(d, "both", False) if d in left and d in right and left.index(d) == right.index(d)
                    else (d, team, counts) for d, team, counts in page]
        yield page, probability


# --- balanced -------------------------------------------------------------------------------------

def balanced(method, left, right, length, uncut):
    for leader in ("left", "right"):
        page, i, j = [], 0, 0
        while len(page) < length and (i < len(left) or j < len(right)):
            take_left = i < j or (i == j and leader == "left")
            if i == len(left):
                take_left = False
            if j == len(right):
                take_left = True
            if take_left:
                document, team, i = left[i], "left", i + 1
            else:
                document, team, j = right[j], "right", j + 1
            if document not in [d for d, _, _ in page]:
                page.append((document, team, True))
        yield (pairs_only(page, left, right, length) if method.get("credit") == "debiased" else page), HALF


def pairs_only(page, left, right, length):
    """Debiased balanced: only rounds that add two documents count, and only if the page shows both."""
    owner, shown, end = {}, set(), 0
    for a, b in zip(left, right):
        added = [d for d in dict.fromkeys((a, b)) if d not in shown]
        shown.update(added)
        end += len(added)
        for d in added:
            owner[d] = ("both", False) if len(added) == 1 else ("left" if d == a else "right", end <= length)
    return [(d, *owner[d]) for d, _, _ in page]


# --- probabilistic --------------------------------------------------------------------------------

def softmax(ranking, shown, tau):
    weights = {d: Fraction(1, (rank + 1) ** tau) for rank, d in enumerate(ranking) if d not in shown}
    total = sum(weights.values())
    return {d: w / total for d, w in weights.items()}


def probabilistic(method, left, right, length, uncut):
    tau = method.get("tau", 3)

    def extend(page, probability):
        shown = [d for d, _, _ in page]
        p = {"left": softmax(left, shown, tau), "right": softmax(right, shown, tau)}
        sides = [side for side in ("left", "right") if p[side]]
        if len(page) >= length or not sides:
            yield page, probability
            return
        for side in sides:
            for document, chance in p[side].items():
                slot = (document, side, len(sides) == 2 or uncut)
                yield from extend(page + [slot], probability * chance / len(sides))

    yield from extend([], Fraction(1))


def posteriors(case, documents):
    left, right, _, _ = cut(case)
    tau, shown, result = case["method"].get("tau", 3), [], []
    for document in documents:
        a = softmax(left, shown, tau).get(document, Fraction(0))
        b = softmax(right, shown, tau).get(document, Fraction(0))
        result.append(a / (a + b))
        shown.append(document)
    return result


# --- optimized ------------------------------------------------------------------------------------

def ranks(left, right, document):
    return [ranking.index(document) + 1 if document in ranking else len(ranking) + 1 for ranking in (left, right)]


def signed_credit(kind, a, b):
    if kind == "inverse":
        return Fraction(1, a) - Fraction(1, b)
    return Fraction(b - a) if kind == "linear" else Fraction((b > a) - (b < a))


def allowed(left, right, length):
    lists = [()]
    for _ in range(length):
        lists = list(dict.fromkeys(
            l + (d,) for l in lists for d in (top(left, l), top(right, l)) if d is not None))
    return lists


def sensitivity(credits):
    attention = [1 / (k + 1) for k in range(len(credits))]
    a = sum(f for f, c in zip(attention, credits) if c > 0)
    b = sum(f for f, c in zip(attention, credits) if c < 0)
    if a == 0 or b == 0:
        return 0.0
    entropy = -sum(x / (a + b) * math.log2(x / (a + b)) for x in (a, b))
    return (a + b) / sum(attention) * entropy


def solve(rows, right_hand):
    """The unique solution of a system of linear equations; None if there is no unique solution."""
    m = [list(row) + [b] for row, b in zip(rows, right_hand)]
    columns, pivots = len(rows[0]), 0
    for column in range(columns):
        pivot = next((r for r in range(pivots, len(m)) if m[r][column] != 0), None)
        if pivot is None:
            return None
        m[pivots], m[pivot] = m[pivot], m[pivots]
        m[pivots] = [x / m[pivots][column] for x in m[pivots]]
        for r in range(len(m)):
            if r != pivots and m[r][column] != 0:
                m[r] = [x - m[r][column] * y for x, y in zip(m[r], m[pivots])]
        pivots += 1
    if any(row[-1] != 0 for row in m[pivots:]):
        return None
    return [m[r][-1] for r in range(columns)]


def optimum(method, left, right):
    """[(list, probability)] of the best vertex, which must be unique; None if no vertex is unbiased."""
    depth = method.get("depth", 10)
    left, right = left[:depth], right[:depth]
    lists = allowed(left, right, min(depth, len(set(left + right))))
    kind = method.get("credit", "inverse")
    credits = [[signed_credit(kind, *ranks(left, right, d)) for d in l] for l in lists]
    rows = [[Fraction(1)] * len(lists)] + [[c[k] for c in credits] for k in range(len(credits[0]))]
    gains = [sensitivity(c) for c in credits]
    vertices = []
    for size in range(1, min(len(rows), len(lists)) + 1):
        for support in itertools.combinations(range(len(lists)), size):
            p = solve([[row[i] for i in support] for row in rows], [1] + [0] * (len(rows) - 1))
            if p is not None and all(x > 0 for x in p):
                vertices.append((sum(gains[i] * float(x) for i, x in zip(support, p)), support, p))
    if not vertices:
        return None
    vertices.sort(key=lambda vertex: -vertex[0])
    assert len(vertices) == 1 or vertices[0][0] - vertices[1][0] > 1e-9, "the optimum is not unique"
    best, support, p = vertices[0]
    return best, [(lists[i], x) for i, x in zip(support, p)]


def optimized(method, left, right, length, uncut):
    depth = method.get("depth", 10)
    found = optimum(method, left, right)
    assert found, "infeasible: move the case to the_infeasible"
    for documents, probability in found[1]:
        page = []
        for d in documents:
            worth = signed_credit(method.get("credit", "inverse"), *ranks(left[:depth], right[:depth], d))
            team = "left" if worth > 0 else "right" if worth < 0 else "both"
            page.append((d, team, worth != 0))
        yield page, probability


# --- credit ---------------------------------------------------------------------------------------

def credit(case, page, clicks):
    """The (outcome, left credit, right credit) of clicks {position: weight}."""
    left, right, _, _ = cut(case)
    method = case["method"]
    counted = {k: w for k, w in weighed(case, page, clicks).items() if page[k][2] and w > 0}
    a = b = Fraction(0)
    if method["kind"] == "team-draft" or method.get("credit") == "debiased":
        a = Fraction(sum(w for k, w in counted.items() if page[k][1] == "left"))
        b = Fraction(sum(w for k, w in counted.items() if page[k][1] == "right"))
    elif method["kind"] == "balanced" and counted:
        rank = {k: ranks(left, right, page[k][0]) for k in counted}
        depth = min(rank[max(counted)])
        a = Fraction(sum(w for k, w in counted.items() if rank[k][0] <= depth))
        b = Fraction(sum(w for k, w in counted.items() if rank[k][1] <= depth))
    elif method["kind"] == "probabilistic" and counted:
        drafted = [d for d, team, _ in page if team is not None]
        q_of = dict(zip(drafted, posteriors(case, drafted)))
        slots = [(w, q_of[page[k][0]]) for k, w in counted.items()]
        if method.get("credit") == "expected-clicks":
            a, b = sum(w * q for w, q in slots), sum(w * (1 - q) for w, q in slots)
        else:
            for owners in itertools.product((1, -1), repeat=len(slots)):
                difference = sum(o * w for o, (w, _) in zip(owners, slots))
                chance = math.prod((q if o == 1 else 1 - q for o, (_, q) in zip(owners, slots)), start=Fraction(1))
                a, b = a + chance * (difference > 0), b + chance * (difference < 0)
    elif method["kind"] == "optimized":
        depth = method.get("depth", 10)
        for k, w in counted.items():
            worth = w * signed_credit(method.get("credit", "inverse"),
                                      *ranks(left[:depth], right[:depth], page[k][0]))
            a, b = a + max(worth, 0), b + max(-worth, 0)
    if not clicks or not counted or not informative(case, page):
        return "none", a, b
    return ("left" if a > b else "right" if b > a else "tie"), a, b


def countable(case, page):
    """The positions that earn credit on some page of the two lists: not pinned, and not below the depth."""
    drafted = [k for k, (_, team, _) in enumerate(page) if team is not None]
    return drafted[:case["method"].get("depth", 10)] if case["method"]["kind"] == "optimized" else drafted


def weighed(case, page, clicks):
    """The clicks with their weights, by the features of each click."""
    features = case["method"].get("click_weights")
    if not features:
        return clicks
    counted = [k for k in sorted(clicks) if k in countable(case, page)]
    weight = lambda k: (features.get("positions", [1] * 10)[min(k, 9)]
                        + features.get("highest", 0) * (k == counted[0])
                        + features.get("lowest", 0) * (k == counted[-1])
                        + features.get("only", 0) * (len(counted) == 1))
    return {k: w * weight(k) if k in counted else w for k, w in clicks.items()}


def bounded(case, page, clicks):
    """The score of clicks {position: weight}, divided by its bound."""
    left, right, _, _ = cut(case)
    method = case["method"]
    outcome, a, b = credit(case, page, clicks)
    counted = [k for k in clicks if k in countable(case, page)]
    if outcome == "none":
        return Fraction(0)
    weights = weighed(case, page, clicks)
    features = method.get("click_weights", {})
    largest = (max(features.get("positions", [1])) + sum(features.get(f, 0) for f in ("highest", "lowest", "only")))
    bound = Fraction(max(sum(weights[k] for k in counted), largest * max(clicks[k] for k in counted)))
    if method["kind"] == "optimized":
        depth = min(method.get("depth", 10), max(len(left), len(right)))
        bound *= signed_credit(method.get("credit", "inverse"), 1, depth + 1)
    if method["kind"] == "probabilistic" and method.get("credit", "more-clicks") == "more-clicks":
        # Clicked slots that earn no credit are either side's with probability 1/2.
        drafted = [d for d, team, _ in page if team is not None]
        q_of = dict(zip(drafted, posteriors(case, drafted)))
        slots = [(clicks[k], q_of[page[k][0]] if page[k][2] else HALF) for k in counted]
        return sum(math.prod((q if o == 1 else 1 - q for o, (_, q) in zip(owners, slots)), start=Fraction(1))
                   * ((d := sum(o * w for o, (w, _) in zip(owners, slots))) and (1 if d > 0 else -1))
                   for owners in itertools.product((1, -1), repeat=len(slots)))
    return (a - b) / bound


def informative(case, page):
    left, right, _, _ = cut(case)
    drafted = sum(team is not None for _, team, _ in page)
    n = len(left) + len(right) if case["method"]["kind"] == "probabilistic" else drafted
    return left[:n] != right[:n] and any(counts for _, _, counts in page)


# --- the file -------------------------------------------------------------------------------------

def text(number):
    return str(Fraction(number))


def slots_of(page):
    return {"documents": [d for d, _, _ in page], "teams": [team for _, team, _ in page],
            "competitive": [counts for _, _, counts in page]}


def by_document(case):
    """Whether the documents identify a page: credit uses ranks, not teams."""
    method = case["method"]
    return method["kind"] == "probabilistic" or (method["kind"] == "balanced" and method.get("credit") != "debiased")


def pages_of(case):
    found = {}
    for page, probability in drafts(case).items():
        key = tuple(d for d, _, _ in page) if by_document(case) else page
        found.setdefault(key, [page, 0])[1] += probability
    pages = []
    for page, probability in sorted(found.values(), key=lambda entry: (-entry[1], str(entry[0]))):
        entry = slots_of(page)
        if by_document(case):
            entry.pop("teams")
        pages.append({"probability": text(probability), **entry, "informative": informative(case, page)})
    return pages


def case(id_, about, method, left, right, length, **more):
    listed = lambda ids: ids.split() if isinstance(ids, str) else ids
    return {"id": id_, "about": about, "method": method, "left": listed(left), "right": listed(right),
            "length": length, **more}


def with_pages(c):
    return {**c, "pages": pages_of(c)}


def with_credit(c, documents, clicks, teams=None, weights=None):
    pages = [page for page in drafts(c) if [d for d, _, _ in page] == documents.split()]
    if teams:
        initials = {"A": "left", "B": "right", "=": "both", ".": None}
        pages = [page for page in pages if [t for _, t, _ in page] == [initials[t] for t in teams]]
    page = pages[0]
    weighted = {k: w for k, w in zip(clicks, weights or [1] * len(clicks))}
    outcome, a, b = credit(c, page, weighted)
    entry = slots_of(page)
    if by_document(c):
        entry.pop("teams")
    return {**{k: v for k, v in c.items() if k != "about"}, **entry,
            "clicks": [{"position": k, "weight": w} for k, w in weighted.items()],
            "outcome": outcome, "left_credit": text(a), "right_credit": text(b)}


def with_share(c, documents, clicks, teams=None, weights=None):
    entry = with_credit(c, documents, clicks, teams, weights)
    page = tuple(zip(entry["documents"], entry.get("teams", ["left"] * len(entry["documents"])), entry["competitive"]))
    tilt = bounded(c, page, {click["position"]: click["weight"] for click in entry["clicks"]})
    for gone in ("outcome", "left_credit", "right_credit"):
        entry.pop(gone)
    return {**entry, "share": text((1 + tilt) / 2)}


def with_searcher(c, searcher):
    outcomes, score = dict.fromkeys(("left", "right", "tie", "none"), Fraction(0)), Fraction(0)
    for page, probability in drafts(c).items():
        if searcher == "one-random-position":
            wanted = [({k: 1}, Fraction(1, len(page))) for k in range(len(page))]
        else:
            wanted = [({k: 1 for k, (d, _, _) in enumerate(page) if d in searcher}, Fraction(1))]
        for clicks, chance in wanted:
            outcome, a, b = credit(c, page, clicks)
            share = probability * chance
            score += share * (a - b)
            if c["method"].get("verdict") == "drawn" and outcome != "none":
                total = 1 if c["method"].get("credit") != "expected-clicks" else a + b
                for side, part in (("left", a / total), ("right", b / total), ("tie", 1 - (a + b) / total)):
                    outcomes[side] += share * part
            elif c["method"].get("verdict") == "score" and outcome != "none":
                tilt = bounded(c, page, clicks)
                for side, part in (("left", max(tilt, 0)), ("right", max(-tilt, 0)), ("tie", 1 - abs(tilt))):
                    outcomes[side] += share * part
            else:
                outcomes[outcome] += share
    return {**c, "searcher": searcher if isinstance(searcher, str) else {"clicks": sorted(searcher)},
            "outcomes": {k: text(v) for k, v in outcomes.items()}, "mean_score": text(score)}


TD = lambda shared, **more: {"kind": "team-draft", "shared": shared, **more}
BI, PI = {"kind": "balanced"}, {"kind": "probabilistic", "tau": 3}
DEBIASED = {"kind": "balanced", "credit": "debiased"}
SCORE = {"verdict": "score"}
EXPECTED = {**PI, **SCORE, "credit": "expected-clicks"}
# Inverse probabilities of attention, and more for the lowest click and for one that is alone.
WEIGHTS = {"positions": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "lowest": 3, "only": 2}
OI = lambda credit_, depth: {"kind": "optimized", "credit": credit_, "depth": depth}
ROTATED = ("a b c d", "b c d a")
SHARED = ("collapse", "credit-all", "ignore-prefix", "ignore-same-rank", "ignore-round")


def the_drafts():
    yield case("BI-1", "balanced: the leader decides", BI, *ROTATED, 4)
    yield case("BI-2", "balanced: an odd length", BI, "1 2", "3 4", 3)
    yield case("BI-3", "balanced: partial overlap", BI, "1 2", "2 3", 2)
    yield case("BI-4", "balanced: identical lists", BI, "a b c", "a b c", 3)
    yield case("BD-1", "debiased: only the first pair has two documents", DEBIASED, *ROTATED, 4)
    yield case("BD-2", "debiased: the last pair is cut in half", DEBIASED, "1 2", "3 4", 3)
    yield case("BD-3", "debiased: two swaps", DEBIASED, "a b c d e f", "b a c d f e", 6)
    yield case("BD-4", "debiased: one list is longer", {**DEBIASED, "depth_policy": "max"}, "a b", "b x c d", 5)
    yield case("TD-1", "team draft as in the paper", TD("credit-all"), *ROTATED, 4)
    yield case("TD-2", "the last round is cut in half", TD("credit-all"), "1 2", "3 4", 3)
    yield case("TD-2-collapse", "the last pair is cut in half", TD("collapse"), "1 2", "3 4", 3)
    yield case("TD-3", "a common first document", TD("credit-all"), "x a b", "x b c", 3)
    for shared in SHARED:
        yield case(f"TD-4-{shared}", "a common first document and a list that runs dry", TD(shared), "x a b", "x b c", 4)
        yield case(f"TD-5-{shared}", "identical lists", TD(shared), "a b c", "a b c", 3)
        yield case(f"TD-8-{shared}", "a common end, and one rank in common", TD(shared), "a b c d", "b a c e", 4)
        yield case(f"TD-9-{shared}", "two swaps", TD(shared), "a b c d e f", "b a c d f e", 6)
    yield case("TD-6-min", "one list is longer: cut", TD("credit-all"), "a", "b c d", 4)
    yield case("TD-6-max", "one list is longer: its rest earns nothing", TD("credit-all", depth_policy="max"), "a", "b c d", 4)
    yield case("TD-6-uncut", "one list is longer: as in the paper", TD("credit-all", depth_policy="uncut"), "a", "b c d", 4)
    yield case("TD-7", "collapse on TD-1", TD("collapse"), *ROTATED, 4)
    for method in (BI, TD("collapse"), PI, OI("inverse", 2)):
        kind = method["kind"]
        yield case(f"contract-repeats-{kind}", "of a repeated document the first counts", method, "a a b a", "b b a", 4)
        yield case(f"contract-empty-{kind}", "nothing", method, "", "", 4)
        yield case(f"contract-one-sided-{kind}", "an empty list leaves nothing to compare", method, "", "a b c", 2)
        yield case(f"contract-max-{kind}", "the rest of the longer list follows", {**method, "depth_policy": "max"}, "a b", "b a c d", 4)
        yield case(f"contract-pinned-{kind}", "a pinned document leaves both lists", method, "a x b", "b x a", 4,
                   pinned=[{"document": "x", "position": 1}, {"document": "ad", "position": 9}])
        yield case(f"contract-ids-{kind}", "ids mean nothing", method, ["a\"b", "c\nd", ""], ["c\nd", "\u2603", "a\"b"], 2)
    yield case("PI-1", "every list has its probability", PI, *ROTATED, 4)
    yield case("PI-2", "partial overlap", PI, "a b", "b c", 1)
    yield case("PI-3", "partial overlap, to the end: a list runs dry", PI, "a b", "b c", 3)
    yield case("PI-4", "another tau", {"kind": "probabilistic", "tau": 1}, "1 3 2 0", "0 1 3 2", 4)
    for credit_ in ("inverse", "linear", "binary"):
        yield case(f"OI-1-{credit_}", "partial overlap", OI(credit_, 2), "1 2", "2 3", 2)
        yield case(f"OI-4-{credit_}", "one swap", OI(credit_, 4), "a b c d", "b a c d", 4)
        yield case(f"OI-5-{credit_}", "nothing in common", OI(credit_, 3), "a b c", "d e f", 3)
        yield case(f"OI-6-{credit_}", "identical lists", OI(credit_, 3), "a b c", "a b c", 3)
    yield case("OI-2-inverse", "a rotation", OI("inverse", 3), "a b c", "b c a", 3)
    yield case("OI-2-linear", "a rotation", OI("linear", 3), "a b c", "b c a", 3)
    yield case("OI-3", "a rotation of four", OI("inverse", 4), *ROTATED, 4)


def the_credits():
    bi = case("BI-1", "", BI, *ROTATED, 4)
    for clicks in itertools.chain.from_iterable(itertools.combinations(range(4), n) for n in range(5)):
        yield with_credit(bi, "a b c d", clicks)
        yield with_credit(bi, "b a c d", clicks)
    # The method never shows this list. Implementations that use the deepest clicked rank of each
    # side answer left.
    yield with_credit_of_list(case("BI-5", "", BI, "3 0 1 2", "1 3 2 0", 4), "0 2 1 3", (0, 2))
    td = case("TD-2", "", TD("credit-all"), "1 2", "3 4", 3)
    for clicks in ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        yield with_credit(td, "1 3 4", clicks, "ABB")
        yield with_credit(td, "3 1 2", clicks, "BAA")
    for clicks in ((0,), (1,), (0, 1), (2,), (3,), (2, 3), (0, 2)):
        yield with_credit(case("TD-7", "", TD("collapse"), *ROTATED, 4), "a b c d", clicks, "AB==")
        yield with_credit(case("TD-1", "", TD("credit-all"), *ROTATED, 4), "a b c d", clicks, "ABAB")
    yield with_credit(case("TD-10", "", TD("collapse"), "a b", "c d", 4), "a c b d", (0, 1, 2), "ABAB", (1, 10, 3))
    yield with_credit(case("TD-11", "", TD("collapse"), "a x b", "b x a", 3,
                           pinned=[{"document": "x", "position": 1}]), "a x b", (1,), "A.B")
    yield with_credit(case("TD-5", "", TD("credit-all"), "a b c", "a b c", 3), "a b c", (0,), "ABA")
    hofmann = lambda **more: case("PI-5", "", {**PI, **more}, "1 3 2 0", "0 1 3 2", 4)
    pi = lambda **more: case("PI-1", "", {**PI, **more}, *ROTATED, 4)
    yield with_credit(hofmann(), "1 0 3 2", (0,))
    yield with_credit(hofmann(), "0 1 3 2", (0,))
    for clicks in itertools.chain.from_iterable(itertools.combinations(range(4), n) for n in range(5)):
        yield with_credit(pi(), "a b c d", clicks)
        yield with_credit(pi(credit="expected-clicks"), "a b c d", clicks)
    yield with_credit(pi(), "b c a d", (1,))
    yield with_credit(pi(), "a b c d", (0, 1, 2), None, (1, 3, 1))
    yield with_credit(pi(credit="expected-clicks"), "a b c d", (0, 1, 2), None, (1, 3, 1))
    for d in "abc":
        yield with_credit(case("PI-2", "", PI, "a b", "b c", 1), d, (0,))
    long = " ".join("abcdefghij")
    far = case("PI-6", "", PI, long, " ".join("jihgfedcba"), 3)
    yield with_credit_of_list(far, "a j b", (0, 1, 2))
    for credit_ in ("inverse", "linear"):
        oi = case(f"OI-2-{credit_}", "", OI(credit_, 3), "a b c", "b c a", 3)
        for clicks in ((), (0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)):
            yield with_credit(oi, "a b c", clicks)
    yield with_credit(case("OI-4", "", OI("linear", 4), "a b c d", "b a c d", 4), "a b c d", (2,))


def with_credit_of_list(c, documents, clicks):
    """Like with_credit, for a list that is not necessarily a draft."""
    page = tuple((d, "left", True) for d in documents.split())
    outcome, a, b = credit(c, page, dict.fromkeys(clicks, 1))
    return {**{k: v for k, v in c.items() if k != "about"}, "documents": documents.split(),
            "competitive": [True] * len(page), "clicks": [{"position": k, "weight": 1} for k in clicks],
            "outcome": outcome, "left_credit": text(a), "right_credit": text(b)}


def the_searchers():
    random = "one-random-position"
    about = "a random click prefers nobody"
    yield with_searcher(case("BI-1", "balanced is unfair: a random click prefers the right list", BI, *ROTATED, 4), random)
    for shared in SHARED:
        yield with_searcher(case(f"TD-1-{shared}", about, TD(shared), *ROTATED, 4), random)
        yield with_searcher(case(f"TD-3-{shared}", about, TD(shared), "x a b", "x b c", 3), random)
        yield with_searcher(case(f"TD-4-{shared}", about, TD(shared), "x a b", "x b c", 4), random)
    for policy in ("min", "max"):
        yield with_searcher(case(f"TD-6-{policy}", about, TD("credit-all", depth_policy=policy), "a", "b c d", 4), random)
    yield with_searcher(case("TD-6-uncut", "the longer list has more slots, and wins", TD("credit-all", depth_policy="uncut"), "a", "b c d", 4), random)
    yield with_searcher(case("TD-12", "one pick of a round is nobody's and the other is not: the right side gains", TD("ignore-same-rank"), "c a s d", "a b s e", 4), random)
    for clicked in ("c", "d", "cd"):
        yield with_searcher(case("TD-1", "team draft cannot see this preference", TD("credit-all"), *ROTATED, 4), list(clicked))
        yield with_searcher(case("TD-7", "collapse does not see it either, and says so", TD("collapse"), *ROTATED, 4), list(clicked))
    yield with_searcher(case("PI-1", "the mean score is 0, but its sign is not fair", PI, *ROTATED, 4), random)
    yield with_searcher(case("PI-1-drawn", about, {**PI, "verdict": "drawn"}, *ROTATED, 4), random)
    yield with_searcher(case("PI-1-drawn", "every document is clicked", {**PI, "verdict": "drawn"}, *ROTATED, 4), list("abcd"))
    yield with_searcher(case("PI-1-expected", "everything relevant is clicked", {**PI, "credit": "expected-clicks"}, *ROTATED, 4), list("cd"))
    yield with_searcher(case("PI-1-expected-drawn", "everything relevant is clicked", {**PI, "credit": "expected-clicks", "verdict": "drawn"}, *ROTATED, 4), list("cd"))
    yield with_searcher(case("PI-3", about, PI, "a b", "b c", 3), random)
    for clicked in ("a", "b", "c", "d", "cd"):
        yield with_searcher(case("PI-1", "everything relevant is clicked", PI, *ROTATED, 4), list(clicked))
        yield with_searcher(case("OI-3", "everything relevant is clicked", OI("inverse", 4), *ROTATED, 4), list(clicked))
    for credit_ in ("inverse", "linear"):
        yield with_searcher(case(f"OI-2-{credit_}", "the mean score is 0, but its sign is not fair", OI(credit_, 3), "a b c", "b c a", 3), random)
    yield with_searcher(case("OI-3", "the mean score is 0, but its sign is not fair", OI("inverse", 4), *ROTATED, 4), random)


    for shared in ("collapse", "credit-all", "ignore-prefix", "ignore-round"):
        yield with_searcher(case(f"TD-4-{shared}-score", about, TD(shared, **SCORE), "x a b", "x b c", 4), random)
    yield with_searcher(case("BD-1", about, DEBIASED, *ROTATED, 4), random)
    yield with_searcher(case("BD-1-score", about, {**DEBIASED, **SCORE}, *ROTATED, 4), random)
    yield with_searcher(case("BD-1", "a pair decides, and nothing else can", DEBIASED, *ROTATED, 4), list("ac"))
    yield with_searcher(case("PI-1-score", about, {**PI, **SCORE}, *ROTATED, 4), random)
    yield with_searcher(case("PI-3-score", about, {**PI, **SCORE}, "a b", "b c", 3), random)
    yield with_searcher(case("PI-3-expected-score", about, EXPECTED, "a b", "b c", 3), random)
    for clicked in ("c", "d", "cd"):
        yield with_searcher(case("PI-1-score", "everything relevant is clicked", {**PI, **SCORE}, *ROTATED, 4), list(clicked))
        yield with_searcher(case("PI-1-expected-score", "everything relevant is clicked", EXPECTED, *ROTATED, 4), list(clicked))
        yield with_searcher(case("OI-3-score", "everything relevant is clicked", {**OI("inverse", 4), **SCORE}, *ROTATED, 4), list(clicked))
    for credit_ in ("inverse", "linear"):
        yield with_searcher(case(f"OI-2-{credit_}-score", about, {**OI(credit_, 3), **SCORE}, "a b c", "b c a", 3), random)
        yield with_searcher(case(f"OI-2-{credit_}-weights", about, {**OI(credit_, 3), **SCORE, "click_weights": WEIGHTS}, "a b c", "b c a", 3), random)


def the_shares():
    sets = [clicks for n in range(5) for clicks in itertools.combinations(range(4), n)]
    for clicks in sets:
        yield with_share(case("TD-7", "", TD("collapse", **SCORE), *ROTATED, 4), "a b c d", clicks, "AB==")
        yield with_share(case("TD-1", "", TD("credit-all", **SCORE), *ROTATED, 4), "a b c d", clicks, "ABAB")
        yield with_share(case("BD-1", "", {**DEBIASED, **SCORE}, *ROTATED, 4), "b a c d", clicks)
        yield with_share(case("PI-1", "", {**PI, **SCORE}, *ROTATED, 4), "a b c d", clicks)
        yield with_share(case("PI-1-expected", "", EXPECTED, *ROTATED, 4), "b c a d", clicks)
        yield with_share(case("PI-1-weights", "", {**EXPECTED, "click_weights": WEIGHTS}, *ROTATED, 4), "b c a d", clicks)
        yield with_share(case("OI-3", "", {**OI("inverse", 4), **SCORE}, *ROTATED, 4), "a b c d", clicks)
        yield with_share(case("OI-3-weights", "", {**OI("inverse", 4), **SCORE, "click_weights": WEIGHTS}, *ROTATED, 4), "a b c d", clicks)
        yield with_share(case("TD-10-weights", "", TD("collapse", **SCORE, click_weights=WEIGHTS), "a b", "c d", 4), "a c b d", clicks, "ABAB")
    for credit_ in ("inverse", "linear"):
        for clicks in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
            yield with_share(case(f"OI-2-{credit_}", "", {**OI(credit_, 3), **SCORE}, "a b c", "b c a", 3), "b a c", clicks)
    dry = case("PI-3", "", {**PI, **SCORE}, "a b", "b c", 3)
    for clicks in ((0,), (2,), (0, 2), (1, 2), (0, 1, 2)):
        yield with_share(dry, "a b c", clicks)
        yield with_share({**dry, "id": "PI-3-expected", "method": EXPECTED}, "a b c", clicks)
    pinned = [{"document": "x", "position": 1}]
    yield with_share(case("TD-11", "", TD("collapse", **SCORE), "a x b", "b x a", 3, pinned=pinned), "a x b", (0, 1), "A.B")
    yield with_share(case("TD-10-events", "", TD("collapse", **SCORE), "a b", "c d", 4), "a c b d", (0, 1, 2), "ABAB", (1, 10, 3))
    yield with_share(case("PI-1-events", "", {**PI, **SCORE}, *ROTATED, 4), "a b c d", (0, 1, 2), None, (1, 3, 1))
    yield with_share(case("PI-1-tau", "", {"kind": "probabilistic", "tau": 1, **SCORE}, *ROTATED, 4), "c a d b", (0, 1, 3))


def the_infeasible():
    for c in (case("OI-2-binary", "no distribution is free of bias", OI("binary", 3), "a b c", "b c a", 3),):
        left, right, _, _ = cut(c)
        assert optimum(c["method"], left, right) is None
        yield {**c, "allowed": [list(l) for l in allowed(left, right, c["length"])]}


def the_sensitivities():
    for c in (case("OI-5", "nothing in common", OI("inverse", 3), "a b c", "d e f", 3),
              case("OI-6", "identical lists", OI("inverse", 3), "a b c", "a b c", 3),
              case("OI-3", "a rotation of four", OI("inverse", 4), *ROTATED, 4)):
        left, right, _, _ = cut(c)
        yield {**c, "allowed": len(allowed(left, right, c["length"])),
               "sensitivity": round(optimum(c["method"], left, right)[0], 12)}


def main():
    document = {
        "$schema": "interleaving.schema.json",
        "version": VERSION,
        "drafts": [with_pages(c) for c in the_drafts()],
        "credits": list(the_credits()),
        "shares": list(the_shares()),
        "searchers": list(the_searchers()),
        "infeasible": list(the_infeasible()),
        "sensitivities": list(the_sensitivities()),
    }
    # One case per line, so that a change to a case changes one line.
    out = ["{"]
    for key, value in document.items():
        if isinstance(value, list):
            lines = ",\n".join("  " + json.dumps(entry, sort_keys=False) for entry in value)
            out.append(f' "{key}": [\n{lines}\n ],')
        else:
            out.append(f' "{key}": {json.dumps(value)},')
    out[-1] = out[-1].rstrip(",")
    sys.stdout.write("\n".join(out) + "\n}\n")


if __name__ == "__main__":
    main()
