"""Chromium without a window, driven by its DevTools protocol over a pipe. Needs no package besides the browser."""
import base64
import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")


def chromium():
    """The path of the browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page. What the page logs as errors is in `errors`; what it would load from elsewhere is in `requests`."""

    def __init__(self, width=1400, height=1000):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.writes = os.pipe()
        self.reads, from_browser = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_browser, from_browser)]
        words = [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
                 "--hide-scrollbars", "--disable-dev-shm-usage", f"--user-data-dir={self.folder.name}",
                 f"--window-size={width},{height}", "--remote-debugging-pipe", "about:blank"]

        def take_ends():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)
        self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      close_fds=False, preexec_fn=take_ends)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self.rest, self.last, self.events = b"", 0, []
        self.errors, self.requests = [], []
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, TimeoutError):
            self.call("Browser.close")
        for end in (self.writes, self.reads):
            os.close(end)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.folder.cleanup()

    def receive(self, seconds):
        until = time.monotonic() + seconds
        while b"\0" not in self.rest:
            if not select.select([self.reads], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not reply")
            block = os.read(self.reads, 1 << 20)
            if not block:
                raise OSError("the browser ended")
            self.rest += block
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        self.events.append(event["method"])
        about = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.errors.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        if event["method"] == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])
        if event["method"] == "Runtime.consoleAPICalled" and about["type"] == "error":
            self.errors.append(str(about["args"]))
        if event["method"] == "Page.javascriptDialogOpening":
            self.errors.append("a dialog opened")
        if event["method"] == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])

    def call(self, method, session=None, seconds=60, **parameters):
        self.last += 1
        number = self.last
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while (got := self.receive(seconds)).get("id") != number:
            if "method" in got:
                self.note(got)
        if "error" in got:
            raise RuntimeError(f"{method}: {got['error']['message']}")
        return got["result"]

    def ask(self, method, **parameters):
        return self.call(method, self.session, **parameters)

    def open(self, path):
        """Opens a file. Returns the seconds until its scripts have run and it is drawn."""
        self.events.clear()
        start = time.monotonic()
        self.ask("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self.events:
            got = self.receive(60)
            if "method" in got:
                self.note(got)
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - start

    def value(self, expression):
        """The value of an expression of JavaScript, awaited if it is a promise."""
        got = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in got:
            raise AssertionError(f"{expression}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def click(self, selector):
        """Clicks the middle of the first element that a selector finds, as a mouse does."""
        x, y = self.value(f"""(() => {{ const found = document.querySelector({json.dumps(selector)});
          found.scrollIntoView({{block: "center", inline: "center"}});
          const at = found.getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39}
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def write(self, text):
        self.ask("Input.insertText", text=text)

    def screenshot(self, path, **options):
        pathlib.Path(path).write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png", **options)["data"]))
