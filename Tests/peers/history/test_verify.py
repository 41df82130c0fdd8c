"""Moves by the built binary between the services that keep a history, and `ferry verify` on every leg.

FERRY_VERIFY_MESSAGES and FERRY_VERIFY_IMAGES make it as large as wanted; the full size is 100000 and 1000.
"""
import json
import os
import random
import urllib.request

import pytest

from moving import TOKEN

MESSAGES = int(os.environ.get("FERRY_VERIFY_MESSAGES", "2000"))
IMAGES = int(os.environ.get("FERRY_VERIFY_IMAGES", "50"))
START = 1470366650123
PEOPLE = [{"id": "ada", "name": "ada"}, {"id": "u2", "name": "bob ü"}, {"id": "c", "name": "cid"}]
WORDS = "tide harbour rope ferry quay lantern gull anchor deck crew bell chart wind keel mast oar".split()
# What the services between cannot hold; everything else has to come through.
ANNOUNCED = {"deleted", "revisions", "reactions", "joins", "leaves", "attachments:apart", "attachment:name", "author",
             "mentions", "format"}


def upload(services, number):
    body = b"\x89PNG\r\n\x1a\n" + random.Random(number).randbytes(2000 + number)
    request = urllib.request.Request(
        services.urls["local"] + f"/v1/files?name=p{number}.png", method="POST", data=body,
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "image/png"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["sha256"]


def fill(services, room):
    """A past with what makes moving hard: equal texts, equal times, long texts, images, replies, edits, deletions."""
    generator = random.Random(11)
    items, alive = [], []
    every = max(MESSAGES // max(IMAGES, 1), 1)
    images = 0
    for number in range(MESSAGES):
        kind = generator.random()
        text = " ".join(generator.choice(WORDS) for _ in range(generator.randrange(2, 12))) + f" {number}"
        if kind < 0.2:
            text = "ok"
        elif kind < 0.21:
            text = " ".join(generator.choice(WORDS) for _ in range(4500))
        item = {"kind": "message", "key": f"m{number}", "time": START + number // 3 * 1777, "by": generator.choice(PEOPLE),
                "text": text}
        if number % every == every - 1 and images < IMAGES:
            item["attachments"] = [{"file": upload(services, images), "name": f"p{images}.png", "type": "image/png"}]
            images += 1
        if alive and generator.random() < 0.1:
            item["reply_to"] = generator.choice(alive[-50:])
        items.append(item)
        alive.append(item["key"])
        if generator.random() < 0.05:
            items.append({"kind": "edit", "key": f"e{number}", "of": alive[-1], "time": item["time"] + 500,
                          "by": item["by"], "text": f"edited {number}"})
        elif generator.random() < 0.03:
            items.append({"kind": "delete", "key": f"d{number}", "of": alive.pop(), "time": item["time"] + 900})
    services.fill(room, items)


def verify(services, *arguments, code=0):
    account = json.loads(services.run("verify", *arguments, "--json", code=code))
    assert account["ok"] == (code == 0), json.dumps(account, indent=1)[:6000]
    return account


def without_splits(losses):
    return {loss for loss in losses if not loss.startswith(("split:", "joined"))}


@pytest.mark.parametrize("there", ["here:copy", "support:copy", "app:copy"])
def test_every_record_of_a_migration_is_accounted_for(services, there):
    fill(services, "lobby")
    services.run("migrate", "here:lobby", there)
    account = verify(services, "here:lobby", there)
    assert account["from"]["holds"]["messages"] == MESSAGES
    assert without_splits(account["losses"]) <= ANNOUNCED, account["losses"]


@pytest.mark.parametrize("there", ["here:copy", "support:copy", "app:copy"])
def test_an_archive_that_went_round_is_the_first(services, there):
    fill(services, "lobby")
    services.run("export", "here:lobby", "first.ferry")
    services.run("verify", "first.ferry")
    outcomes = verify(services, "here:lobby", "first.ferry")["outcomes"]
    assert {name for name, count in outcomes.items() if count} == {"identical"}
    services.run("import", "first.ferry", there)
    verify(services, "first.ferry", there)
    services.run("export", there, "second.ferry")
    assert verify(services, there, "second.ferry")["losses"] == {}
    services.run("import", "second.ferry", "here:back")
    verify(services, "second.ferry", "here:back")
    services.run("export", "here:back", "third.ferry")
    account = verify(services, "first.ferry", "third.ferry", "--through", there)
    assert without_splits(account["losses"]) <= ANNOUNCED, account["losses"]


def test_from_service_to_service_and_back(services):
    fill(services, "lobby")
    services.run("migrate", "here:lobby", "support:one")
    services.run("migrate", "support:one", "app:two")
    verify(services, "support:one", "app:two")
    services.run("migrate", "app:two", "support:three")
    verify(services, "app:two", "support:three")
    # What the service between could not hold is lost on the way, and counted.
    verify(services, "support:one", "support:three", "--through", "app")


def test_faults_are_found(services):
    services.fill("lobby", [
        {"kind": "message", "key": f"m{number}", "time": START + number * 1000, "by": PEOPLE[number % 3],
         "text": f"said {number}"} for number in range(40)])
    services.run("migrate", "here:lobby", "here:copy")
    copies = services.history("here:copy")
    services.run("post", "here:copy", "--delete", copies[7]["id"])
    services.run("post", "here:copy", "never said", "--as", "stranger")
    account = verify(services, "here:lobby", "here:copy", code=65)
    assert account["outcomes"]["extra"] == 1
    assert account["outcomes"]["altered"] + account["outcomes"]["missing"] == 1
    assert account["outcomes"]["identical"] == 39


def test_the_plan_counts_what_will_be_lost(services):
    fill(services, "lobby")
    plan = json.loads(services.run("plan", "--migrate", "here:lobby", "support:copy", "--sample", "0", "--json"))
    assert plan["whole"] and plan["messages"] <= MESSAGES
    kept = {item["what"]: item["outcome"] for item in plan["items"]}
    assert kept["edits"] == "converted" and kept["deleted messages"] == "dropped"
    assert plan["seconds"] > 0
