"""Headless Chromium through the DevTools protocol over a pipe: no driver, no server, no package."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
TIMEOUT = 60


def find_chromium():
    """Return the path of Chromium or Chrome; None if there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class BrowserError(RuntimeError):
    """The browser refused a command or a script raised."""


class Browser:
    """One Chromium with one page."""

    def __init__(self, program, profile):
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        command_read, self._command = os.pipe()
        self._answer, answer_write = os.pipe()
        script = f'exec "$0" "$@" 3<&{command_read} 4>&{answer_write}'
        arguments = [*FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, program, *arguments],
            pass_fds=(command_read, answer_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        self._buffer = b""
        self._number = 0
        self._session = None
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """Return the answer to one command; events that arrive meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._command, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url, width, height=900, *, dark=False):
        """Show a page at a window size and colour scheme; return when it has loaded."""
        self.events.clear()
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.send("Page.navigate", url="about:blank")
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression):
        """Return the value of a JavaScript expression, promises awaited."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def wait(self, expression):
        """Return when an expression is true."""
        deadline = time.monotonic() + TIMEOUT
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {expression}")
            time.sleep(0.05)

    def press(self, key, code, text=""):
        """Press and release one key."""
        key_code = {"Tab": 9, "Enter": 13, "Escape": 27}[key]
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=code,
                text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=key_code,
            )

    def screenshot(self, path):
        """Write what is shown as PNG."""
        shot = self.send("Page.captureScreenshot", format="png")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def problems(self):
        """Return console errors, uncaught exceptions and log errors since the page was opened."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in {"error", "warning"}:
                found.append(str(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in {"error", "warning"}:
                found.append(parameters["entry"]["text"])
        return found

    def requests(self):
        """Return the addresses asked for since the page was opened, data URIs left out."""
        asked = [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith("data:")]

    def close(self):
        """End the browser and everything it started."""
        with contextlib.suppress(BrowserError, OSError):
            self._session = None
            self.send("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._command)
        os.close(self._answer)

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answer], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError("no answer in time")
            chunk = os.read(self._answer, 1 << 20)
            if not chunk:
                raise BrowserError("the browser ended")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
