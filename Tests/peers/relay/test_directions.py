"""Everything that a bridge mirrors, in every direction between four services."""
import random
import time

import pytest
from bridge import wait_until
from corners import NAMES, corners
from four import Four
from watching import digest


@pytest.fixture
def bridge(tmp_path, request):
    four = Four(tmp_path, app=getattr(request, "param", ""))
    four.start_ready()
    all = corners(four)
    yield all
    for corner in all.values():
        corner.close()
    four.stop()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", NAMES)
def test_everything_goes_from_each_service_to_the_three_others(bridge, source):
    go_from(bridge, source)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bridge", ["transport: polling, engine: 3,", "transport: polling, engine: 4,"], indirect=True)
@pytest.mark.parametrize("source", ["backendless", "local"])
def test_everything_goes_from_and_to_backendless_where_it_is_only_polled(bridge, source):
    go_from(bridge, source)


def go_from(bridge, source):
    here = bridge[source]
    others = {name: corner for name, corner in bridge.items() if name != source}

    def everywhere(what, is_there):
        for name, corner in others.items():
            wait_until(lambda: is_there(corner), 60, f"{what} from {source} at {name}")

    # A join first: elsewhere whoever speaks may come to be a member by that.
    here.join(f"joins-{source}")
    everywhere("the join", lambda corner: corner.has_member(f"joins-{source}"))

    gone = here.say("ann", "to be deleted")
    kept = here.say("ann", "frist, 日本語 👩‍👩‍👧")
    everywhere("the messages", lambda corner: corner.texts() == [("ann", "to be deleted"), ("ann", "frist, 日本語 👩‍👩‍👧")])
    here.edit(kept, "ann", "first")
    everywhere("the edit", lambda corner: ("ann", "first") in corner.texts())
    here.read(f"reads-{source}", kept)
    everywhere("the read mark", lambda corner: corner.has_read(f"reads-{source}", "first"))
    here.delete(gone)
    everywhere("the deletion", lambda corner: corner.texts() == [("ann", "first")])

    picture = b"\x89PNG\r\n\x1a\n" + random.Random(source).randbytes(150_000)
    here.show("ann", picture)
    everywhere("the picture", lambda corner: digest(picture) in corner.pictures())

    # Nobody keeps typing: it is repeated as typists do, until everybody has seen it.
    end = time.monotonic() + 60
    while not all(corner.has_typed(f"types-{source}") for corner in others.values()):
        assert time.monotonic() < end, [n for n, c in others.items() if not c.has_typed(f"types-{source}")]
        here.type(f"types-{source}")
        time.sleep(1.1)
    # And nothing of it all went round: here is what was done here.
    assert here.texts() == [("ann", "first")]
