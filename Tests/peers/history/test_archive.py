"""Archives and Slack exports that `ferry` writes, judged by other people's programs; and exports from Slack that it reads."""
import json
import re
import subprocess
import sys
import zipfile

import bagit

from test_moving import conversation


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_bagit_and_sha256sum_accept_an_archive_and_notice_a_changed_byte(services):
    services.fill("lobby", conversation(300))
    archive = services.folder / "lobby.ferry"
    for _ in range(2):
        services.run("export", "here:lobby", archive)
        assert bagit.Bag(str(archive)).is_valid()
    sums = ["sha256sum", "-c", "--quiet", "manifest-sha256.txt", "tagmanifest-sha256.txt"]
    subprocess.run(sums, cwd=archive, check=True)
    services.run("verify", archive)
    segment = archive / "data/log/000001.jsonl"
    lines = [json.loads(line) for line in segment.read_text().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[0]["kind"] == "segment" and lines[-1]["kind"] == "seal"
    flip(segment)
    assert not bagit.Bag(str(archive)).is_valid()
    assert subprocess.run(sums, cwd=archive, capture_output=True).returncode != 0
    services.run("verify", archive, code=65)


def test_a_tar_unpacks_to_a_bag(services):
    services.fill("lobby", conversation(100))
    services.run("export", "here:lobby", "lobby.tar")
    subprocess.run(["tar", "xf", "lobby.tar"], cwd=services.folder, check=True)
    assert bagit.Bag(str(services.folder / "lobby")).is_valid()
    services.run("verify", "lobby.tar")


def test_a_slack_export_is_read_by_a_viewer_and_read_back(services):
    services.fill("lobby", conversation(200, edits=False))
    services.run("export", "here:lobby", "lobby.zip", "--format", "slack")
    with zipfile.ZipFile(services.folder / "lobby.zip") as export:
        assert export.testzip() is None
        names = export.namelist()
        users = json.loads(export.read("users.json"))
        channels = json.loads(export.read("channels.json"))
        days = [name for name in names if re.fullmatch(r"lobby/\d{4}-\d\d-\d\d\.json", name)]
        messages = [message for day in days for message in json.loads(export.read(day))]
    assert [channel["name"] for channel in channels] == ["lobby"]
    assert all(user["profile"]["email"].endswith(".invalid") for user in users)
    written = [message for message in messages if message.get("subtype") != "channel_join"]
    assert len(written) == 200 and len({message["ts"] for message in messages}) == len(messages)

    viewer = subprocess.run(
        [sys.executable, "-c", "from slackviewer.main import main; main()", "-z", "lobby.zip", "--no-browser",
         "--html-only", "-o", "html"],
        cwd=services.folder, capture_output=True, timeout=100)
    assert viewer.returncode == 0, viewer.stderr[-2000:]
    page = "".join(path.read_text() for path in (services.folder / "html").rglob("*.html"))
    assert "bob ü" in page and "plain " in page

    original = services.history("here:lobby")
    services.run("import", "lobby.zip", "here:again")
    shown = services.history("here:again")
    assert [message["text"] for message in shown] == [message["text"] for message in original]
    assert [message["time"] for message in shown] == [message["time"] for message in original]
    assert sum(message["reply_to"] is not None for message in shown) == sum(
        message["reply_to"] is not None for message in original)
