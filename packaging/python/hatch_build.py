"""Puts the program into the wheel, and the platform into the wheel's name."""

import os
import pathlib
import subprocess
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent


def program() -> pathlib.Path:
    """The program of RANKDUEL_PROGRAM, or a new one, which needs a Rust toolchain."""
    ready = os.environ.get("RANKDUEL_PROGRAM")
    if ready:
        return pathlib.Path(ready)
    command = ["cargo", "build", "--profile", "dist", "--locked", "--bin", "rankduel"]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    return REPOSITORY / "target/dist/rankduel"


class ProgramHook(BuildHookInterface):
    """The hook that hatchling calls before it writes the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        # any Python 3: the program does not load it
        build_data["tag"] = f"py3-none-{platform}"
        build_data["shared_scripts"][str(program())] = "rankduel"
