#!/usr/bin/env python3
"""The bill of materials of the program, and the licences of all that is in it.

    packaging/bill.py TARGET FOLDER [PACKAGE]

writes `sbom.cdx.json` (CycloneDX 1.5) and `THIRD-PARTY-LICENSES.txt` for a program of this Rust
target with the feature `otel`, as packages have it, or for another PACKAGE. The same Cargo.lock gives the same files: they name neither
paths nor the time.
"""

import collections
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = sys.argv[3] if len(sys.argv) > 3 else "rankduel"
LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
Package = dict[str, Any]


def resolved(target: str) -> tuple[list[Package], dict[str, list[str]]]:
    """The packages whose code is in the program, the program first, and the uses of each."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--features=otel", f"--filter-platform={target}"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    uses = {
        node["id"]: sorted(
            dependency["pkg"]
            for dependency in node["deps"]
            # neither tests nor build scripts are in the program
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        )
        for node in metadata["resolve"]["nodes"]
    }
    (first,) = (key for key, package in packages.items() if package["name"] == PROGRAM and package["source"] is None)
    reached, waiting = {first}, [first]
    while waiting:
        new = set(uses[waiting.pop()]) - reached
        reached |= new
        waiting += new
    others = sorted(reached - {first}, key=lambda key: (packages[key]["name"], packages[key]["version"]))
    return [packages[key] for key in [first, *others]], {key: uses[key] for key in reached}


def purl(package: Package) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package: Package, checksums: dict[tuple[str, str], str]) -> dict[str, Any]:
    found = {
        "type": "application" if package["name"] == PROGRAM else "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package["license"]:
        # an older way to write OR
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := checksums.get((package["name"], package["version"])):
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found


def bill(packages: list[Package], uses: dict[str, list[str]]) -> dict[str, Any]:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}
    program, *libraries = packages
    references = {package["id"]: purl(package) for package in packages}
    content = {
        "metadata": {"component": component(program, checksums)},
        "components": [component(package, checksums) for package in libraries],
        "dependencies": [
            {"ref": purl(package), "dependsOn": sorted(references[used] for used in uses[package["id"]])}
            for package in packages
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, hashlib.sha256(json.dumps(content).encode()).hexdigest())
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{number}", "version": 1, **content}


def licences(packages: list[Package]) -> str:
    """Each text once, below the packages that have it."""
    users, texts = collections.defaultdict(list), {}
    without = []
    for package in packages:
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']} ({package['license']})"
        folder = pathlib.Path(package["manifest_path"]).parent
        files = sorted(path for path in folder.iterdir() if path.is_file() and LICENCE_FILE.match(path.name))
        for path in files:
            text = path.read_text(errors="replace").replace("\r\n", "\n").strip()
            key = " ".join(text.split())
            texts.setdefault(key, text)
            if name not in users[key]:
                users[key].append(name)
        if not files:
            without.append(name)
    line = "-" * 80
    parts = [f"{line}\n" + "\n".join(users[key]) + f"\n{line}\n\n{text}\n" for key, text in texts.items()]
    head = f"{PROGRAM} contains these packages. Each licence is below the packages that have it.\n"
    if without:
        head += "\nWithout a file of their own, under the licence in brackets:\n\n" + "\n".join(without) + "\n"
    return head + "\n" + "\n".join(parts)


def main() -> None:
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    packages, uses = resolved(target)
    (folder / "sbom.cdx.json").write_text(json.dumps(bill(packages, uses), indent=1) + "\n")
    (folder / "THIRD-PARTY-LICENSES.txt").write_text(licences(packages))


main()
