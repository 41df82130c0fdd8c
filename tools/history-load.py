#!/usr/bin/env python3
"""Measures moving a long history between the local server and an archive: seconds, messages a second, peak memory, and
the processor's time a message of both the command and the server.

    tools/history-load.py [MESSAGES] [FERRY]

FERRY is a release build. Prints one JSON line a step.
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
FERRY = sys.argv[2] if len(sys.argv) > 2 else ".build/release/ferry"
BATCH = 512


def fill(url, count):
    """Writes messages of about 90 letters through the server's API, by eight names, one in fifty of them edited."""
    words = "the quick brown fox jumps over the lazy dog and runs away from it all the time until evening".split()
    for start in range(0, count, BATCH):
        items = []
        for number in range(start, min(start + BATCH, count)):
            text = f"{number} " + " ".join(words[number % 7:])
            by = {"id": f"u{number % 8}", "name": f"person {number % 8}"}
            items.append({"kind": "message", "key": f"m{number}", "time": 1470366650123 + number * 997, "by": by, "text": text})
        for part in (items[:BATCH],):
            request = urllib.request.Request(
                url + "/v1/rooms/lobby/import", method="POST", data=json.dumps({"items": part}).encode(),
                headers={"Authorization": "Bearer owner", "Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=60).read()


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(server, step, *arguments):
    before = processor_seconds(server.pid)
    start = time.monotonic()
    process = subprocess.Popen([FERRY, *arguments, "--json", "--quiet"], stdout=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    own = usage.ru_utime + usage.ru_stime
    there = processor_seconds(server.pid) - before
    summary = json.loads(process.stdout.read() or b"{}")
    count = summary.get("messages", 0) or summary.get("unchanged", 0)
    print(json.dumps({
        "step": step, "exit": os.waitstatus_to_exitcode(status), "messages": count, "seconds": round(seconds, 2),
        "per_second": round(count / seconds), "cpu_seconds": round(own, 2),
        "us_each": round(own * 1e6 / max(count, 1), 1), "server_us_each": round(there * 1e6 / max(count, 1), 1),
        "resident_mib": round(usage.ru_maxrss / 1024, 1)}), flush=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ready = folder / "ready.json"
        config = folder / "serve.yaml"
        config.write_text(json.dumps(
            {"serve": {"data": str(folder / "data"), "local": {"listen": "127.0.0.1:0", "tokens": ["owner"]}}}))
        server = subprocess.Popen([FERRY, "serve", "--config", str(config), "--ready-file", str(ready)])
        while not ready.exists():
            time.sleep(0.01)
        url = json.loads(ready.read_text())["local"]
        at = url.replace("http://", "local+http://owner@")
        fill(url, COUNT)
        archive = str(folder / "lobby.ferry")
        measured(server, "export local to archive", "export", at + "/lobby", archive)
        measured(server, "export again", "export", at + "/lobby", archive)
        measured(server, "import archive into local", "import", archive, at + "/copy")
        measured(server, "import again", "import", archive, at + "/copy")
        measured(server, "migrate local to local", "migrate", at + "/lobby", at + "/third", "--state", str(folder / "state"))
        status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        print(json.dumps({"step": "server", "resident_mib": int(peak.split()[1]) // 1024}))
        server.terminate()
        server.wait()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    main()
