#!/usr/bin/env python3
"""Runs programs against a server of their own, each with its URL and a name for an experiment.

    python3 conformance/check_generated.py --program target/debug/rankduel 'python=python3 client.py'

scripts/check-clients gives it clients that public tools generate from openapi.yaml.
"""

import argparse
import shlex
import subprocess
import tempfile

from check_clients import RealServer

WITHIN_SECONDS = 120


def main():
    parser = argparse.ArgumentParser(description="Run generated clients against a server.")
    parser.add_argument("--program", required=True, help="the program `rankduel`")
    parser.add_argument("clients", nargs="+", help="NAME=COMMAND")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = RealServer(arguments.program, folder)
        try:
            for client in arguments.clients:
                name, _, command = client.partition("=")
                subprocess.run([*shlex.split(command), server.url, name], check=True, timeout=WITHIN_SECONDS)
                print(f"check-clients: the generated client for {name} works")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
