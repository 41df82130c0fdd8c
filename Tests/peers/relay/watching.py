"""What those who watch a corner of a bridge need."""
import hashlib
import urllib.request


def digest(data):
    return hashlib.sha256(data).hexdigest()


def fetch(url, **headers):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20).read()


class Heard:
    """What a thread has heard of one thing."""

    def __init__(self):
        self.items = []

    def has(self, item):
        return item in list(self.items)
