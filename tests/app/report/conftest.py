"""What tests of reports share: a browser, and a report with names full of markup."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from data import looked_up
from optional_packages import optional

import missratio as mr

pd = optional("pandas")

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The protocol is spoken on file descriptors 3 and 4; a helper puts the pipes there.
LAUNCH = """
import fcntl, os, sys
there, back = (fcntl.fcntl(int(a), fcntl.F_DUPFD, 10) for a in sys.argv[1:3])
os.dup2(there, 3)
os.dup2(back, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def executable():
    """Where there is a browser; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """Chromium without a window or a network, by its DevTools protocol over a pipe."""

    def __init__(self, profile):
        their_end, self._write = os.pipe()
        self._read, their_other_end = os.pipe()
        self._buffer, self._next, self.events = b"", 0, []
        command = [
            sys.executable, "-c", LAUNCH, str(their_end), str(their_other_end),
            executable(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
            "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking",
            f"--user-data-dir={profile}",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            pass_fds=(their_end, their_other_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_end)
        os.close(their_other_end)
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """Call a method of the protocol, and wait for what it returns."""
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") != self._next:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def _receive(self):
        while b"\0" not in self._buffer:
            got = os.read(self._read, 1 << 20)
            if not got:
                raise RuntimeError("The browser has gone.")
            self._buffer += got
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def run(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        result = self.send(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def open(self, page, *, width=1200, height=900, features=()):
        """Load a file, and wait until its figures are drawn: whether they were."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.emulate(*features)
        self.load(page)
        return self.run(
            "new Promise((done, fail) => {"
            "  const look = () => document.documentElement.dataset.drawn"
            "    ? done(true) : setTimeout(look, 20);"
            "  setTimeout(() => done(false), 20000);"
            "  look();"
            "})"
        )

    def load(self, page):
        """Load a file, and wait until the browser says that it has."""
        self.events.clear()
        self.send("Page.navigate", url=Path(page).as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._receive())

    def emulate(self, *features, media=""):
        """Take on features of the media, such as a dark colour scheme, or print."""
        described = [{"name": name, "value": value} for name, value in features]
        self.send("Emulation.setEmulatedMedia", media=media, features=described)

    def press(self, key, times=1):
        """Press a key."""
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def events_of(self, method):
        """What the page has reported of one kind."""
        self.run("0")
        return [e["params"] for e in self.events if e.get("method") == method]

    def close(self):
        """End the browser."""
        try:
            self._session = None
            self.send("Browser.close")
        except (RuntimeError, OSError):
            self._process.kill()
        self._process.wait(20)
        os.close(self._write)
        os.close(self._read)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if executable() is None:
        pytest.skip(f"there is no browser here: none of {', '.join(NAMES)}")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


MARKUP = [
    "<script>window.hurt = 1</script>",
    "a | b & <b onmouseover='window.hurt = 1'>c</b>",
    # The end of a line, to a program.
    "*x*\u2028[y](javascript:window.hurt=1) `z`",
]


@pytest.fixture(scope="session")
def learned():
    """A classifier whose φ was learned, and its rows; names and labels hold markup."""
    rng = np.random.default_rng(0)
    n, d = 700, len(MARKUP)
    Z0, Z1 = rng.normal(0, 1, (n, d)), rng.normal(1.3, 1, (n, d))
    phi = mr.LogisticMissingness([-1.7, -np.inf, -np.inf], [0.9, 0.0, 0.0])
    X0 = mr.corrupt(Z0, phi, random_state=1)
    revealed = looked_up(X0, Z0, 90, rng)
    X = pd.DataFrame(np.concatenate([X0, Z1]), columns=MARKUP)
    y = np.repeat(["<i>well</i>", "<i>ill</i>"], n)
    classifier = mr.NeymanPearsonClassifier(
        mr.NaiveBayesRatio(mr.KLIEP()), alpha=0.1, controlled_class="<i>well</i>",
        missingness={"<i>well</i>": mr.learn_missingness(X0, revealed)},
        random_state=0,
    )  # fmt: skip
    return classifier.fit(X, y), X, y


@pytest.fixture(scope="session")
def report(learned):
    title = "A <script>window.hurt = 1</script> title"
    return mr.build_report(*learned, title=title, folds=2)


@pytest.fixture(scope="session")
def html(report):
    pytest.importorskip("vl_convert")
    return report.html()
