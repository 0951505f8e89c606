"""Check the dependencies (`cargo metadata` on standard input) against a deny.toml.

Reads only the part of cargo-deny's format that our deny.toml uses: allowed licences, wildcards,
duplicates, registries, git.
"""

import json
import re
import sys
import tomllib
from collections import defaultdict


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether allowed licences satisfy an SPDX expression: one side of each OR, both of each AND."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def alternatives() -> bool:
        met = together()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            met = together() or met
        return met

    def together() -> bool:
        met = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = one() and met
        return met

    def one() -> bool:
        token = tokens.pop(0)
        if token == "(":
            met = alternatives()
            tokens.pop(0)
            return met
        if tokens and tokens[0] == "WITH":
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in allowed

    return alternatives()


def defects(policy: dict, metadata: dict) -> list[str]:
    """The violations, one line each."""
    allowed = set(policy["licenses"]["allow"])
    registries = {f"registry+{url}" for url in policy["sources"]["allow-registry"]}
    git = tuple(f"git+{url}" for url in policy["sources"]["allow-git"])
    found = []
    for package in metadata["packages"]:
        name, source = f"{package['name']} {package['version']}", package["source"]
        if source is not None and source not in registries and not (git and source.startswith(git)):
            found.append(f"{name}: it comes from {source}")
        if not package["license"]:
            found.append(f"{name}: it names no licence")
        elif not is_allowed(package["license"], allowed):
            found.append(f"{name}: its licence is {package['license']}")
        if source is None and policy["bans"]["wildcards"] == "deny":
            for dependency in package["dependencies"]:
                if dependency["req"] == "*" and not dependency.get("path"):
                    found.append(f"{name}: any version of {dependency['name']} would do")
    return found


def duplicates(metadata: dict) -> list[str]:
    """Packages with more than one version."""
    versions = defaultdict(set)
    for package in metadata["packages"]:
        versions[package["name"]].add(package["version"])
    return [f"{name} {', '.join(sorted(found))}" for name, found in sorted(versions.items()) if len(found) > 1]


def main() -> int:
    with open(sys.argv[1], "rb") as file:
        policy = tomllib.load(file)
    metadata = json.load(sys.stdin)
    if policy["bans"]["multiple-versions"] == "warn":
        for duplicate in duplicates(metadata):
            print(f"check-dependencies: more than one version: {duplicate}", file=sys.stderr)
    found = defects(policy, metadata)
    for defect in found:
        print(f"check-dependencies: {defect}", file=sys.stderr)
    if not found:
        print(f"check-dependencies: {len(metadata['packages'])} packages are as deny.toml wants them")
    return 1 if found else 0


sys.exit(main())
