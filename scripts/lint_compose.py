"""Check that docker-compose.yml and the proxy's configuration agree.

Reads the compose file on standard input, as JSON from `docker compose config`. The argument is
HAProxy's file.
"""

import json
import re
import sys

REPLICA = re.compile(r"rankduel-\d+")


def seconds(duration: str) -> int:
    """Convert a duration such as 1m30s to seconds."""
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", duration)
    if not duration or parts is None:
        raise ValueError(f"{duration!r} is no duration")
    hours, minutes, rest = (int(part or 0) for part in parts.groups())
    return 3600 * hours + 60 * minutes + rest


def defects(compose: dict, haproxy: str) -> list[str]:
    """The defects, one line each."""
    found = []
    services = compose["services"]
    replicas = {name: service for name, service in services.items() if REPLICA.fullmatch(name)}
    if len(replicas) < 2:
        found.append("there are fewer than two replicas")

    for name, service in services.items():
        tag = service["image"].rpartition(":")[2]
        if name not in replicas and not re.match(r"\d", tag):
            found.append(f"{name}: the image {service['image']} has no version")
        for key in ("restart", "stop_grace_period", "healthcheck"):
            if key not in service:
                found.append(f"{name}: there is no {key}")
        if name != "proxy" and service.get("ports"):
            found.append(f"{name}: it is published, past the proxy")

    servers = {}
    for name, service in replicas.items():
        environment = service["environment"]
        drain = int(environment["RANKDUEL_DRAIN_SECONDS"]) + int(environment["RANKDUEL_LAME_DUCK_SECONDS"])
        if seconds(service["stop_grace_period"]) <= drain + 5:
            found.append(f"{name}: stop_grace_period leaves no time after the drain of {drain} s")
        servers[name] = f"{name}:{environment['RANKDUEL_LISTEN'].rpartition(':')[2]}"
        user, host = re.match(r"postgres://(\w+):[^@]*@([\w-]+)/", environment["RANKDUEL_DATABASE_URL"]).groups()
        if services[host]["environment"]["POSTGRES_USER"] != user:
            found.append(f"{name}: {host} has no user {user}")

    proxied = dict(re.findall(r"^ +server (\S+) (\S+)", haproxy, flags=re.MULTILINE))
    if proxied != servers:
        found.append(f"the proxy's servers are {proxied}, the replicas {servers}")
    binds = set(re.findall(r"^ +bind :(\d+)", haproxy, flags=re.MULTILINE))
    published = {str(port["target"]) for port in services["proxy"]["ports"]}
    if binds != published:
        found.append(f"the proxy listens on {binds}, and {published} are published")
    (hard_stop,) = re.findall(r"^ +hard-stop-after (\w+)", haproxy, flags=re.MULTILINE)
    if seconds(hard_stop) >= seconds(services["proxy"]["stop_grace_period"]):
        found.append("the proxy's hard-stop-after is not below its stop_grace_period")
    return found


with open(sys.argv[1], encoding="utf-8") as file:
    sys.exit("\n".join(defects(json.load(sys.stdin), file.read())) or 0)
