"""`ferry serve` as a process of its own."""
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
FERRY = os.environ.get("FERRY_BIN", str(ROOT / ".build/debug/ferry"))
PATIENCE = 60


class Served:
    """One service of `ferry serve`, alone in a folder. It may be killed and started again on its port."""

    # The service's name in the file of bound URLs.
    name = None

    def __init__(self, folder):
        self.folder = folder
        self.port = 0
        self.process = None

    def section(self):
        """What the configuration's `serve` has beside `data`; the service listens on `self.listen`."""
        raise NotImplementedError

    @property
    def listen(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        config, ready, log = (self.folder / name for name in ("serve.yaml", "ready.json", "log"))
        # JSON is YAML.
        config.write_text(json.dumps({"serve": {"data": str(self.folder / "data"), **self.section()}}))
        ready.unlink(missing_ok=True)
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [FERRY, "serve", "--config", str(config), "--ready-file", str(ready)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        end = time.monotonic() + PATIENCE
        while not ready.exists():
            assert self.process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.005)
        self.url = json.loads(ready.read_text())[self.name]
        self.port = urllib.parse.urlsplit(self.url).port

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(timeout=PATIENCE) == 0, (self.folder / "log").read_text()[-2000:]
