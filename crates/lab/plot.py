#!/usr/bin/env python3
"""Draw what `lab figures` and `lab simulate --out` write: an SVG beside each CSV file.

  crates/lab/plot.py crates/lab/notes/figures/*.csv

Needs matplotlib. Files that are tables (copeland-table-1) are left out.
"""

import csv
import itertools
import pathlib
import re
import sys

from matplotlib import pyplot

pyplot.rcParams |= {"axes.grid": True, "grid.color": "#e4e4e4", "svg.fonttype": "none"}
pyplot.rcParams["svg.hashsalt"] = "lab"  # the same file for the same data

# As in the papers: curves above this multiple of the last regret of a policy leave the frame.
FRAMES = {
    "copeland-1": ("ccb:alpha=0.51", 5),
    "thompson-1a": ("rucb:alpha=0.51", 1.5),
    "thompson-1b": ("ccb:alpha=0.51", 1.2),
}
LOGARITHMIC = ("savage", "thompson-delay", "late-")
LATE = re.compile(r"(.*?) (?:every )?(\d+) (steps|in flight|servers)")
LATE_LABELS = {
    "steps": "steps between two deliveries of feedback",
    "in flight": "duels in flight",
    "servers": "servers (100 duels in flight, 100 steps of lag)",
}
MARKS = "os^DvP*X<>ph"
DASHES = ("-", "--", "-.", ":")


def look(number, policy):
    """Marks differ within a figure, so that curves can be told apart in grey."""
    mark = MARKS[number % len(MARKS)]
    return {"color": f"C{number}", "marker": mark, "markersize": 4, "label": policy}


def column(rows, name):
    return [float(row[name] or 0) for row in rows]


def draw(axes, number, policy, steps, rows):
    """The mean with its 95 % interval, and the median as a thin line where they differ much."""
    means, halves, medians = (column(rows, of) for of in ("mean", "half_interval", "median"))
    shown = look(number, policy)
    axes.plot(steps, means, DASHES[number % 4], markevery=(0.02 * number, 0.18), **shown)
    low, high = ([m + sign * h for m, h in zip(means, halves)] for sign in (-1, 1))
    axes.fill_between(steps, low, high, color=shown["color"], alpha=0.12, linewidth=0)
    if len(steps) > 1 and abs(means[-1] - medians[-1]) > means[-1] / 4:
        axes.plot(steps, medians, color=shown["color"], linewidth=0.6)


def regret(axes, name, rows):
    """Curves over time; a policy whose horizons have separate runs is drawn as marks."""
    policies = {}
    for policy, curve in itertools.groupby(rows, lambda row: row["policy"]):
        policies.setdefault(policy, []).append(list(curve))
    horizon = max(column(rows, "step"))
    # policies learn little in the first thousandth
    first = 0 if name.startswith("batched") else horizon / 1000
    for number, (policy, curves) in enumerate(policies.items()):
        if len(curves) > 1:
            ends = [curve[-1] for curve in curves]
            means, halves = column(ends, "mean"), column(ends, "half_interval")
            axes.errorbar(column(ends, "step"), means, halves, linestyle="", **look(number, policy))
        else:
            points = [row for row in curves[0] if float(row["step"]) >= first]
            draw(axes, number, policy, column(points, "step"), points)
    if first:
        axes.set_xscale("log")
    if name in FRAMES:
        policy, multiple = FRAMES[name]
        axes.set_ylim(0, multiple * float(policies[policy][0][-1]["mean"]))
    axes.set_xlabel("time (steps)")


def late(axes, rows):
    """Regret at the horizon over the delay of feedback."""
    for number, policy in enumerate(dict.fromkeys(row["policy"] for row in rows)):
        points = [row for row in rows if row["policy"] == policy]
        values = [int(LATE.fullmatch(row["matrix"])[2]) for row in points]
        draw(axes, number, policy, values, points)
    axes.set_xscale("log")
    axes.set_xlabel(LATE_LABELS[LATE.fullmatch(rows[0]["matrix"])[3]])


def spread(axes, rows):
    """The standard deviation of regret as a share of ECW-RMED's mean, as in the paper."""
    mean = next(float(row["mean"]) for row in rows if row["policy"] == "ecw-rmed") / 100
    deviations, halves = column(rows, "standard_deviation"), column(rows, "deviation_half_interval")
    widths, errors = ([value / mean for value in of] for of in (deviations, halves))
    axes.barh([row["policy"] for row in rows], widths, xerr=errors, capsize=4)
    axes.set_xlabel("standard deviation of regret / mean regret of ECW-RMED (%), 95 % interval")


def subsets(axes, rows):
    """How many subsets have a Condorcet winner, or what the bound gains in the mean."""
    if "with_condorcet_winner" in rows[0]:
        totals = column(rows, "subsets")
        values = [n / total for n, total in zip(column(rows, "with_condorcet_winner"), totals)]
        errors = [(share * (1 - share) / total) ** 0.5 for share, total in zip(values, totals)]
        axes.set_ylabel("share with a Condorcet winner, ± standard error")
    else:
        rows = [row for row in rows if row["quantity"].startswith("mean")]
        values, errors = column(rows, "value"), column(rows, "standard_error")
        axes.set_yscale("log")
        axes.set_ylabel("mean of Δ²/Δ_min², ± standard error")
    axes.errorbar(column(rows, "rankers"), values, errors, marker="o")
    axes.set_xlabel("rankers in the subset")


def main(paths):
    for path in map(pathlib.Path, paths):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        name, parts = path.stem, {}
        if "mean" in rows[0]:
            is_late = LATE.fullmatch(rows[0]["matrix"])
            for row in rows:
                parts.setdefault(is_late[1] if is_late else row["matrix"], []).append(row)
        elif "rankers" in rows[0]:
            parts[""] = rows
        else:
            continue
        size = (9.5, 1.8 if name.startswith("thompson-2") else 4.8 * len(parts))
        canvas = pyplot.figure(figsize=size, layout="constrained")
        for number, (matrix, rows) in enumerate(parts.items(), 1):
            axes = canvas.add_subplot(len(parts), 1, number)
            axes.set_title(f"{name}: {matrix}, {rows[0]['runs']} runs" if matrix else name)
            if not matrix:
                subsets(axes, rows)
            elif name.startswith("thompson-2"):
                spread(axes, rows)
            else:
                late(axes, rows) if is_late else regret(axes, name, rows)
                axes.set_ylabel("cumulative regret (steps)")
                if name.startswith(LOGARITHMIC):
                    axes.set_yscale("log")
                else:
                    axes.set_ylim(bottom=0)
                axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        svg = path.with_suffix(".svg")
        canvas.savefig(svg, metadata={"Date": None})
        svg.write_text(" ".join(svg.read_text().split()) + "\n")  # it had a line for each point
        pyplot.close(canvas)


main(sys.argv[1:])
