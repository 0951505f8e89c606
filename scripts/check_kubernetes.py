"""The checks of scripts/check-kubernetes: the chart, and a container of its manifests."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import helm_python as helm
import kubernetes_validate
import kubernetes_validate.utils
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHART = ROOT / "packaging/helm/rankduel"
# The oldest has the budget's unhealthyPodEvictionPolicy.
VERSIONS = sorted(set(kubernetes_validate.utils.all_versions()) - {"1.25.0", "1.26.0"})
KEY = "0123456789abcdef0123456789abcdef"
SECRETS = {"apiKeys": [KEY], "databaseUrl": "postgres://user:password@database/rankduel"}

# Values that must give valid manifests, with a name for people.
VALID: dict[str, dict[str, Any]] = {
    "an existing secret": {"existingSecret": "rankduel"},
    "its own secret": SECRETS,
    "two keys": {**SECRETS, "apiKeys": [KEY, KEY[::-1]]},
    "a fixed number of pods": {**SECRETS, "autoscaling": {"enabled": False}, "replicas": 3},
    "no budget": {**SECRETS, "disruptionBudget": {"enabled": False}},
    "a budget in percent": {**SECRETS, "disruptionBudget": {"maxUnavailable": "50%"}},
    "everything else": {
        **SECRETS,
        "image": {"repository": "registry.example.org/rankduel", "tag": "1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "service": {"type": "LoadBalancer", "port": 80, "annotations": {"a/b": "true"}},
        "env": {"RANKDUEL_NO_LISTEN": "true", "RANKDUEL_MEMORY_MEGABYTES": "512"},
        "podAnnotations": {"a/b": "1"},
        "podLabels": {"team": "search"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "search", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "lameDuckSeconds": 15,
        "drainSeconds": 60,
    },
}
# Values that Helm must refuse, with a part of its message.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "apiKeys is empty"),
    ({"apiKeys": [KEY]}, "databaseUrl is empty"),
    ({**SECRETS, "apiKeys": ["tooshort"]}, "apiKeys"),
    ({**SECRETS, "apiKeys": [f"{KEY},{KEY}"]}, "apiKeys"),
    ({**SECRETS, "databaseUrl": "sqlite://rankduel.db"}, "databaseUrl"),
    ({**SECRETS, "replicas": 0}, "replicas"),
    ({**SECRETS, "replica": 3}, "replica"),
    ({**SECRETS, "env": {"RANKDUEL_IDLE_SECONDS": 60}}, "RANKDUEL_IDLE_SECONDS"),
]

Manifest = dict[str, Any]


def fail(message: str) -> None:
    sys.exit(f"check-kubernetes: {message}")


def parsed(text: str) -> list[Manifest]:
    return [manifest for manifest in yaml.safe_load_all(text) if manifest]


def render(values: dict[str, Any], name: str = "rankduel") -> list[Manifest]:
    """The manifests that Helm makes of the chart."""
    with helm.Chart.load(CHART) as chart:
        files = chart.render(values, name=name, namespace="search")
    return [manifest for path, text in sorted(files.items()) if path.endswith(".yaml") for manifest in parsed(text)]


def only(manifests: list[Manifest], kind: str) -> Manifest:
    found = [manifest for manifest in manifests if manifest["kind"] == kind]
    if len(found) != 1:
        fail(f"there are {len(found)} manifests of kind {kind}, not 1")
    return found[0]


def check_schemas(manifests: list[Manifest], what: str, versions: list[str]) -> None:
    """Every manifest is valid, without unknown fields, in these versions of Kubernetes."""
    for version in versions:
        for manifest in manifests:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                path = "/".join(map(str, error.absolute_path))
                fail(f"{what}: {manifest['kind']} at {path} in Kubernetes {version}: {error.message}")


def check_references(manifests: list[Manifest], what: str) -> None:
    """What no schema says: names and labels lead somewhere, and times fit together."""
    deployment = only(manifests, "Deployment")
    pod = deployment["spec"]["template"]
    labels = pod["metadata"]["labels"].items()
    container = pod["spec"]["containers"][0]
    selectors = {
        "the Deployment": deployment["spec"]["selector"]["matchLabels"],
        "the Service": only(manifests, "Service")["spec"]["selector"],
        "the spread": pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    }
    kinds = {manifest["kind"] for manifest in manifests}
    if "PodDisruptionBudget" in kinds:
        budget = only(manifests, "PodDisruptionBudget")
        selectors["the budget"] = budget["spec"]["selector"]["matchLabels"]
    for who, selector in selectors.items():
        if not selector.items() <= labels:
            fail(f"{what}: {who} selects {selector}, which the pods are not")
    if "HorizontalPodAutoscaler" in kinds:
        target = only(manifests, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"]
        if target != deployment["metadata"]["name"]:
            fail(f"{what}: the autoscaler scales {target}")
    if ("replicas" in deployment["spec"]) == ("HorizontalPodAutoscaler" in kinds):
        fail(f"{what}: either the Deployment or the autoscaler must say how many pods there are")
    if pod["spec"]["serviceAccountName"] != only(manifests, "ServiceAccount")["metadata"]["name"]:
        fail(f"{what}: the pods' ServiceAccount does not exist")
    variables = environment(container)
    served = int(variables["RANKDUEL_LAME_DUCK_SECONDS"]) + int(variables["RANKDUEL_DRAIN_SECONDS"])
    if pod["spec"]["terminationGracePeriodSeconds"] <= served:
        fail(f"{what}: pods are killed before they have drained")
    if "Secret" in kinds:
        secret = only(manifests, "Secret")
        named = pod["spec"]["volumes"][0]["secret"]["secretName"]
        if secret["metadata"]["name"] != named:
            fail(f"{what}: the pods read the Secret {named}, which does not exist")
        entries = {**secret.get("data", {}), **secret.get("stringData", {})}
        if set(entries) != {"api-keys", "database-url"}:
            fail(f"{what}: the Secret has {sorted(entries)}")


def environment(container: Manifest) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container["env"]}


def check_chart() -> None:
    for values in (SECRETS, {"existingSecret": "rankduel"}):
        report = helm.lint(CHART, values, strict=True)
        # 1 is an information, such as that the chart has no icon
        findings = [message for message in report["messages"] if message["severity"] > 1]
        if findings or report["errors"]:
            fail(f"lint: {findings or report['errors']}")
    for what, values in VALID.items():
        manifests = render(values)
        check_schemas(manifests, what, VERSIONS)
        check_references(manifests, what)
    other = render(SECRETS, name="search")
    check_references(other, "a release of another name")
    if (name := only(other, "Service")["metadata"]["name"]) != "search-rankduel":
        fail(f"the Service of the release `search` is called {name}")
    for values, says in REFUSED:
        try:
            render(values)
        except helm.HelmError as error:
            if says not in str(error):
                fail(f"{values} is refused without {says!r}: {error}")
        else:
            fail(f"{values} is not refused")
    print(f"chart: {len(VALID)} sets of values are valid, {len(REFUSED)} are refused")


def status(url: str, seconds: float) -> int | None:
    """The status of a GET, as a kubelet asks: by the pod's address. None if nobody answers."""
    request = urllib.request.Request(url, headers={"host": "10.1.2.3:7171"})
    try:
        with urllib.request.urlopen(request, timeout=seconds) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@contextlib.contextmanager
def running(container: Manifest, program: str, database_url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The container as a process, and its URL. The secrets are in another folder, the port is any."""
    mount = container["volumeMounts"][0]["mountPath"]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "api-keys").write_text(KEY)
        pathlib.Path(folder, "database-url").write_text(database_url)
        variables = {name: value.replace(mount, folder) for name, value in environment(container).items()}
        port = container["ports"][0]["containerPort"]
        if variables["RANKDUEL_LISTEN"] != f"0.0.0.0:{port}":
            fail(f"the server listens on {variables['RANKDUEL_LISTEN']}, not on the container's port {port}")
        variables["RANKDUEL_LISTEN"] = "0.0.0.0:0"
        process = subprocess.Popen(
            [program, *container["args"]], env=variables, cwd="/", text=True, stdout=subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("listening on "):
                fail(f"the container does not start: {line!r}")
            yield process, line.split()[-1].replace("0.0.0.0", "127.0.0.1")
        finally:
            process.kill()
            process.wait()


def check_container(manifests: list[Manifest]) -> None:
    """The probes of a running container, and its end."""
    program = os.environ["RANKDUEL_PROGRAM"]
    pod = only(manifests, "Deployment")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    probes = {name: container[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    with running(container, program, os.environ["RANKDUEL_TEST_POSTGRES_URL"]) as (process, url):
        for name, probe in probes.items():
            answer = status(url + probe["httpGet"]["path"], 30)
            if answer != 200:
                fail(f"the {name} gets {answer}")
        if (answer := status(f"{url}/v1/experiments", 30)) != 401:
            fail(f"without a key, the answer is {answer}")
        process.send_signal(signal.SIGTERM)
        asked = time.monotonic()
        while (answer := status(url + probes["readinessProbe"]["httpGet"]["path"], 30)) == 200:
            if time.monotonic() > asked + 30:
                fail("the pod is ready after SIGTERM")
        if answer != 503 or status(url + probes["livenessProbe"]["httpGet"]["path"], 30) != 200:
            fail(f"after SIGTERM, the pod is not alive and unready: {answer}")
        try:
            code = process.wait(pod["terminationGracePeriodSeconds"])
        except subprocess.TimeoutExpired:
            fail("the pod does not end within its grace period")
        if code != 0:
            fail(f"the server ended with {code} after SIGTERM")
    print("container: alive, ready, refuses callers without a key, drains within the grace period")


def main() -> None:
    check_chart()
    check_container(render({"existingSecret": "rankduel"}))
    print("check-kubernetes: all passed")


main()
