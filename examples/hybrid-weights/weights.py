#!/usr/bin/env python3
"""The best weight of vectors against BM25, from clicks on interleaved pages.

A search retrieves two lists once, by BM25 and by vectors. Eleven rankers fuse them with the weights
0, 0.1, … 1 of the vectors; scores are scaled to 0..1 within the query. A policy chooses which two
weights a page interleaves, simulated searchers click, and the verdict names a weight that no other
one beats by more than the margin. Each class of queries has an experiment of its own.

    pip install ./crates/python                      # Python 3.9 or later
    python examples/hybrid-weights/weights.py        # made-up documents, vectors by LSA; some minutes
    python … --data packages                         # Debian's packages, vectors of wordllama
    python … --data letor --letor MQ2008-S4.txt      # two scores of judged documents
"""

import argparse
import collections
import math
import pathlib
import re
import subprocess

import dueling_bandits as db
import numpy as np

WEIGHTS = [step / 10 for step in range(11)]
DEPTH = 100  # documents of each list
LENGTH = 10
PAGES_A_DAY = 5_000
MOST = 100_000  # pages


class Query:
    """The two lists of a query, fused with each weight, and the grades of its documents."""

    def __init__(self, kind, words, vectors, grades):
        self.kind, self.grades = kind, grades
        words, vectors = scaled(words), scaled(vectors)
        documents = sorted(words.keys() | vectors.keys())
        self.rankings = []
        for weight in WEIGHTS:
            score = {d: (1 - weight) * words.get(d, 0) + weight * vectors.get(d, 0) for d in documents}
            self.rankings.append(sorted(documents, key=lambda d: (-score[d], d))[:DEPTH])

    def ndcg(self, ranker):
        def gain(grades):
            return sum((2**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades[:LENGTH]))

        ideal = gain(sorted(self.grades.values(), reverse=True))
        return gain([self.grades.get(d, 0) for d in self.rankings[ranker]]) / ideal if ideal else 0.0


def scaled(scores):
    """The best documents of a list, from 0 to 1."""
    best = sorted(scores, key=lambda d: (-scores[d], d))[:DEPTH]
    low, high = (min(scores[d] for d in best), max(scores[d] for d in best)) if best else (0, 0)
    return {d: (scores[d] - low) / (high - low) if high > low else 1.0 for d in best}


def tokens(text):
    return re.findall(r"[a-z0-9]+", text.lower())


class Index:
    """BM25, and cosine of vectors."""

    def __init__(self, texts, embed):
        self.names = list(texts)
        counts = [collections.Counter(tokens(texts[name])) for name in self.names]
        lengths = np.array([sum(count.values()) for count in counts])
        norm = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        self.postings = collections.defaultdict(dict)
        for number, count in enumerate(counts):
            for term, times in count.items():
                self.postings[term][number] = times * 2.2 / (times + norm[number])
        self.embed = embed
        self.vectors = embed([texts[name] for name in self.names])

    def query(self, kind, text, grades):
        words = collections.Counter()
        for term in tokens(text):
            found = self.postings.get(term, {})
            rare = math.log(1 + (len(self.names) - len(found) + 0.5) / (len(found) + 0.5))
            for number, score in found.items():
                words[self.names[number]] += rare * score
        cosine = self.vectors @ self.embed([text])[0]
        nearest = np.argsort(-cosine, kind="stable")[:DEPTH]
        return Query(kind, words, {self.names[n]: float(cosine[n]) for n in nearest}, grades)


def lsa(texts, dimensions=40):
    """Vectors by latent semantic analysis: for tests and where there is no model."""
    vocabulary = {term: at for at, term in enumerate(sorted({t for text in texts for t in tokens(text)}))}

    def counted(some):
        rows = np.zeros((len(some), len(vocabulary)))
        for row, text in zip(rows, some):
            for term in tokens(text):
                if term in vocabulary:
                    row[vocabulary[term]] += 1
        return np.log1p(rows)

    matrix = counted(texts)
    weight = np.log(len(texts) / (1 + (matrix > 0).sum(0))).clip(0)
    axes = np.linalg.svd(matrix * weight, full_matrices=False)[2][:dimensions]

    def embed(some):
        vectors = (counted(some) * weight) @ axes.T
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    return embed


def made_up(seed=1, topics=40, documents=15, words=12):
    """Each topic has words of its own. A document has some of them and a code. A query has the code,
    or words of the topic that many of its documents lack."""
    rng = np.random.default_rng(seed)
    texts, topic_of = {}, {}
    for topic in range(topics):
        for number in range(documents):
            name = f"t{topic}-{number}"
            own = rng.choice(words, 4, replace=False)
            other = rng.integers(topics * words, size=6)
            noise = " ".join(f"w{at // words}x{at % words}" for at in other)
            texts[name] = " ".join(f"w{topic}x{at}" for at in own) + f" {noise} code{topic} n{number}"
            topic_of[name] = topic
    index = Index(texts, lsa(list(texts.values())))
    queries = []
    for topic in range(topics):
        grades = {name: 2 for name in texts if topic_of[name] == topic}
        for _ in range(4):
            asked = " ".join(f"w{topic}x{at}" for at in rng.choice(words, 2, replace=False))
            queries.append(index.query("topic", asked, grades))
            number = rng.integers(documents)
            exact = {name: 2 if name == f"t{topic}-{number}" else 0 for name in grades}
            queries.append(index.query("code", f"code{topic} n{number}", exact))
    return queries


def packages(seed=1, size=4_000):
    """Descriptions of Debian's packages. A topic is a tag that people gave to packages; a name finds
    the package, and less so those of the same source."""
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=pathlib.Path(wordllama.__file__).parent, disable_download=True)
    found = {}
    out = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, text=True, errors="replace").stdout
    for block in out.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*(?:\n[ \t].*)*)", block, re.MULTILINE))
        if "Tag" in fields and "Description" in fields:
            found.setdefault(fields["Package"], fields)
    rng = np.random.default_rng(seed)
    names = sorted(rng.choice(sorted(found), min(size, len(found)), replace=False))
    texts = {name: name.replace("-", " ") + ". " + found[name]["Description"] for name in names}
    index = Index(texts, lambda some: model.embed(some, norm=True))
    tagged, source = collections.defaultdict(list), {}
    for name in names:
        source[name] = found[name].get("Source", name).split(" ")[0]
        for tag in re.findall(r"[\w-]+::[\w:+-]+", found[name]["Tag"]):
            tagged[tag].append(name)
    queries = []
    for tag, members in sorted(tagged.items()):
        facet, _, value = tag.partition("::")
        if 5 <= len(members) <= 200 and facet in ("works-with", "use", "field", "game", "admin", "hardware", "devel"):
            queries.append(index.query("topic", value.replace(":", " ").replace("-", " "), dict.fromkeys(members, 2)))
    for name in rng.choice(names, len(queries), replace=False):
        grades = {other: 1 for other in names if source[other] == source[name]}
        queries.append(index.query("name", name.replace("-", " "), {**grades, name: 2}))
    return queries


def letor(path, words=25, vectors=40):
    """Documents that were judged, with two of their features as the scores."""
    found = collections.defaultdict(list)
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        grade, query, *features = line.partition("#")[0].split()
        found[query].append((int(grade), dict(feature.split(":") for feature in features)))
    queries = []
    for query, rows in found.items():
        grades = {f"d{at}": grade for at, (grade, _) in enumerate(rows)}
        lists = [{f"d{at}": float(row[str(n)]) for at, (_, row) in enumerate(rows)} for n in (words, vectors)]
        if any(grades.values()):
            queries.append(Query("all", *lists, grades))
    return queries


def until_verdict(queries, margin, seed):
    """The policy at its verdict, and the number of pages."""
    policy = db.Policy(f"d-ts-verdict:margin={margin}", len(WEIGHTS), seed)
    searchers = db.ClickModel("navigational", 3, seed)
    rng = np.random.default_rng(seed)
    for page_number in range(1, MOST + 1):
        duel = policy.select()
        left, right = duel
        outcome = None
        if not duel.is_self:
            query = queries[rng.integers(len(queries))]
            page = db.interleave("team-draft", query.rankings[left], query.rankings[right], LENGTH, page_number)
            clicks = searchers.click([query.grades.get(document, 0) for document in page.documents])
            won = page.credit(clicks).outcome
            outcome = {"left": 1, "right": 0, "tie": 0.5, None: None}[won]
        policy.observe(duel, outcome)
        if policy.verdict:
            return policy, page_number
    return policy, MOST


def lost(wins, chosen, rival):
    """The measured share of its comparisons with a rival that the chosen one lost."""
    both = wins[chosen, rival] + wins[rival, chosen]
    return wins[rival, chosen] / both if both else 0.0


def report(queries, margin, runs):
    print(f"{'queries':8}{'best by nDCG':>14}{'chosen':>8}{'nDCG lost':>11}{'answers':>10}{'pages':>10}{'days':>6}  measured within the margin")
    kinds = sorted({query.kind for query in queries})
    for kind in (["all", *kinds] if len(kinds) > 1 else ["all"]):
        some = [query for query in queries if kind in ("all", query.kind)]
        ndcg = np.array([np.mean([query.ndcg(ranker) for query in some]) for ranker in range(len(WEIGHTS))])
        for seed in range(runs):
            policy, pages = until_verdict(some, margin, seed)
            best = int(ndcg.argmax())
            chosen = policy.verdict.winner if policy.verdict else policy.champion()
            alike = [WEIGHTS[r] for r in range(len(WEIGHTS)) if r == chosen or lost(policy.wins, chosen, r) > 0.5 - margin]
            answers = f"{policy.verdict.comparisons:,}" if policy.verdict else "open"
            print(
                f"{kind:8}{WEIGHTS[best]:8} {ndcg[best]:.3f}{WEIGHTS[chosen]:8}{ndcg[best] - ndcg[chosen]:11.3f}{answers:>10}"
                f"{pages:10,}{pages / PAGES_A_DAY:6.1f}  {' '.join(map(str, alike))}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["made-up", "packages", "letor"], default="made-up")
    parser.add_argument("--letor", help="the file of judged documents")
    parser.add_argument("--margin", type=float, default=0.04, help="weights within it of each other are alike")
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    queries = {"made-up": made_up, "packages": packages, "letor": lambda: letor(given.letor)}[given.data]()
    report(queries, given.margin, given.runs)


if __name__ == "__main__":
    main()
