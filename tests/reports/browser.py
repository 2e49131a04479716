"""One headless Chromium for all pages of a test process, reached by its debugging pipe."""

from __future__ import annotations

import atexit
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HEIGHT = 813  # of a window of 900 pixels, below its bars
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
PATIENCE_S = 60
ABOVE_STANDARD = 10  # numbers of pipes that collide with none of Chromium's own, 3 and 4
SETTLED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


class Browser:
    """A process of Chromium, and messages of its DevTools protocol, each ended by a zero byte."""

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self._folder = tempfile.TemporaryDirectory()
        (reads, sends), (receives, writes) = map(_above, (os.pipe(), os.pipe()))

        def become_3_and_4() -> None:
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={self._folder.name}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=become_3_and_4,
        )
        os.close(reads)
        os.close(writes)
        self._to, self._from = os.fdopen(sends, "wb"), os.fdopen(receives, "rb")
        self._numbers = itertools.count(1)
        self._rest = b""
        self._events: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the process."""
        self.call("Browser.close")
        self._process.wait()
        self._to.close()
        self._from.close()
        self._folder.cleanup()

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Return the result of a method; events meanwhile are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._to.write(json.dumps(message | ({"sessionId": session} if session else {})).encode())
        self._to.write(b"\0")
        self._to.flush()
        while (answer := self._message()).get("id") != number:
            self._events.append(answer)
        assert "error" not in answer, (method, answer)
        return dict(answer["result"])

    def wait(self, event: str) -> None:
        """Return once an event has come."""
        while not any(one.get("method") == event for one in self._events):
            self._events.append(self._message())

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._from], [], [], PATIENCE_S)[0], "Chromium does not answer"
            more = os.read(self._from.fileno(), 1 << 20)
            assert more, "Chromium has ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def opened(
        self, address: str, width: int, scheme: str, virtual_ms: int
    ) -> tuple[str, list[str]]:
        """Return the document that a page has become, and the messages of its console."""
        self._events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        page = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable", page)
        size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", page, **size)
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", page, features=media)
        self.call("Page.navigate", page, url=address)
        self.wait("Page.loadEventFired")
        self.call("Runtime.evaluate", page, expression=SETTLED, awaitPromise=True)
        if virtual_ms:
            self.call("Emulation.setVirtualTimePolicy", page, policy="advance", budget=virtual_ms)
            self.wait("Emulation.virtualTimeBudgetExpired")
        html = "document.documentElement.outerHTML"
        document = self.call("Runtime.evaluate", page, expression=html)["result"]["value"]
        self.call("Target.closeTarget", targetId=target)
        return document, [json.dumps(one) for one in self._events if one["method"] in _SAID]


_SAID = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")


def _above(pipe: tuple[int, int]) -> tuple[int, int]:
    """Move a pipe's ends to numbers above Chromium's."""
    first, second = (fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, ABOVE_STANDARD) for one in pipe)
    for one in pipe:
        os.close(one)
    return first, second


@cache
def browser() -> Browser:
    """Return the browser of this process, started by the first call."""
    made = Browser()
    atexit.register(made.close)
    return made


@cache
def opened(
    path: Path, fragment: str = "", *, width: int = 800, scheme: str = "light", virtual_ms: int = 0
) -> tuple[str, str]:
    """Return the document that a page has become in the browser, and what its console says."""
    document, said = browser().opened(f"{path.as_uri()}#{fragment}", width, scheme, virtual_ms)
    return document, "\n".join(said)
