"""Puts the program into the wheel, and the platform into the wheel's name."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    """The hook that hatchling calls before it writes the wheel. `packaging/build` sets the variables."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build_data["pure_python"] = False
        # any Python 3: the program does not load it
        build_data["tag"] = f"py3-none-{os.environ['RANKDUEL_WHEEL_TAG']}"
        build_data["shared_scripts"][os.environ["RANKDUEL_PROGRAM"]] = "rankduel"
