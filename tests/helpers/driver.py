"""A headless Chromium by the W3C WebDriver protocol over plain HTTP: what these tests need of it, without a package."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import requests

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ENTER = "\ue007"


def missing():
    """What is not installed, in words; empty where all is."""
    programs = {"chromium": CHROMIUM, "chromedriver": shutil.which("chromedriver")}
    return " and ".join(name for name, path in programs.items() if path is None)


class Browser:
    """One window. `width` is that of the page in CSS pixels; a narrow one is shown as a phone does."""

    def __init__(self, width, height=900):
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        port = next(found[1] for line in self.driver.stdout if (found := re.search(r"on port (\d+)\.$", line.strip())))
        self.root = f"http://127.0.0.1:{port}/session"
        # No name is resolved: a page that asks for anything fails, and the log shows it.
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        arguments += ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"]
        options = {"args": [*arguments, f"--window-size={width},{height}"], "binary": CHROMIUM}
        if width < 600:
            options["mobileEmulation"] = {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 2.0}}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        found = self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self.root += f"/{found['sessionId']}"

    def _call(self, method, path, content=None):
        # The driver is on this machine, whatever proxy the environment names.
        with requests.Session() as session:
            session.trust_env = False
            answer = session.request(method, self.root + path, json=content, timeout=300).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{path}: {answer['error']}: {answer['message'].splitlines()[0]}")
        return answer

    def open(self, path, fragment=""):
        self._call("POST", "/url", {"url": Path(path).resolve().as_uri() + fragment})

    def run(self, script, *arguments):
        """What a script returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def scheme(self, name):
        """Show the page as where the system wishes for light or dark."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def find(self, selector):
        """Elements that a CSS selector matches, to be clicked or typed into."""
        found = self._call("POST", "/elements", {"using": "css selector", "value": selector})
        return [one[ELEMENT] for one in found]

    def click(self, element):
        """A pointer's click, after scrolling there."""
        self._call("POST", f"/element/{element}/click", {})

    def type(self, element, text):
        """Focus the element and press keys."""
        self._call("POST", f"/element/{element}/value", {"text": text})

    def log(self, kind):
        """Entries since the last call: of the console ("browser") or of the network ("performance")."""
        return self._call("POST", "/se/log", {"type": kind})

    def addresses(self):
        """Every address that was asked for."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]

    def media(self, name):
        """Show the page as on this medium, as in print; with an empty name as on the screen again."""
        self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"media": name}})

    @staticmethod
    def printed(path, folder):
        """A page as a PDF, as it would be printed; by Chromium itself, as the driver gives a long page ten seconds."""
        target = Path(folder) / "printed.pdf"
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000"]
        address = Path(path).resolve().as_uri()
        subprocess.run([CHROMIUM, *options, f"--print-to-pdf={target}", address], check=True, timeout=300)
        return target.read_bytes()

    def close(self):
        """End the browser and its driver."""
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=30)
            self.driver.stdout.close()
