"""A headless Chromium, driven through WebDriver (https://www.w3.org/TR/webdriver2/). Only what the
tests need. `scripts/install-packages` installs both programs."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from typing import Any

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A browser with one window and a new profile."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = ["chromedriver", "--port=0", "--allowed-ips=127.0.0.1"]
        self._driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._driver.stdout is not None
        found = next((match for line in self._driver.stdout if (match := re.search(r"on port ([1-9]\d*)\.?$", line))), None)
        if found is None:
            raise RuntimeError(f"chromedriver ended with code {self._driver.wait()}")
        # the pipe must not fill
        threading.Thread(target=self._driver.stdout.read, daemon=True).start()
        arguments = [
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--force-device-scale-factor=1",
            "--hide-scrollbars",
            f"--user-data-dir={self._profile.name}",
        ]
        if os.geteuid() == 0:  # Chromium refuses to run in its sandbox as root
            arguments.append("--no-sandbox")
        options = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        self._session = f"http://127.0.0.1:{found[1]}/session"
        try:
            answer = self._send("", {"capabilities": {"alwaysMatch": options}})
        except BaseException:
            self._driver.kill()
            raise
        self._session += "/" + answer["sessionId"]

    def _send(self, command: str, body: Any = None, method: str | None = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._session + command, content, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{command}: {json.load(error)['value']['message']}") from None

    def open(self, url: str) -> None:
        """Open a page and wait until it has loaded."""
        self._send("/url", {"url": url})

    @property
    def url(self) -> str:
        return str(self._send("/url"))

    def _element(self, selector: str) -> str:
        found = self._send("/element", {"using": "css selector", "value": selector})
        return f"/element/{found[_ELEMENT]}"

    def click(self, selector: str) -> None:
        """Click on the first element that matches."""
        self._send(self._element(selector) + "/click", {})

    def type(self, selector: str, text: str) -> None:
        """Replace the text of an input. A line break submits its form."""
        element = self._element(selector)
        self._send(element + "/clear", {})
        self._send(element + "/value", {"text": text})

    def text(self, selector: str) -> str:
        return str(self._send(self._element(selector) + "/text"))

    def run(self, script: str) -> Any:
        """Run a function body in the page."""
        return self._send("/execute/sync", {"script": script, "args": []})

    def console(self) -> list[str]:
        """Errors and warnings of the page since the last call."""
        return [entry["message"] for entry in self._send("/se/log", {"type": "browser"})]

    def _devtools(self, command: str, parameters: Any) -> Any:
        return self._send("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def picture(self, width: int, height: int) -> bytes:
        """The page as a PNG of this width, from the top down to at most this height."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)
        tall = min(height, self.run("return document.body.getBoundingClientRect().bottom + 24"))
        clip = {"x": 0, "y": 0, "width": width, "height": tall, "scale": 1}
        taken = self._devtools("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip})
        return base64.b64decode(taken["data"])

    def close(self) -> None:
        try:
            self._send("", method="DELETE")
        finally:
            self._driver.kill()
            self._driver.wait()
            self._driver.stdout.close()  # type: ignore[union-attr]
            self._profile.cleanup()
