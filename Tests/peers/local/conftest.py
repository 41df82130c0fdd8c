"""The local server as its own process, and its OpenAPI document."""
import http.client
import json
import urllib.parse

import jsonschema
import pytest
import referencing
import referencing.jsonschema
import yaml

from served import ROOT, Served

DOCUMENT = yaml.safe_load((ROOT / "providers/local/openapi.yaml").read_text())
DRAFT = referencing.jsonschema.DRAFT202012
REGISTRY = referencing.Registry().with_resource("urn:api", DRAFT.create_resource(DOCUMENT))


class Server(Served):
    """The local server alone."""

    name = "local"

    def section(self):
        tokens = ["owner", {"token": "adas", "user": "ada"}, {"token": "mods", "user": "mo", "moderator": True}]
        return {"local": {"listen": self.listen, "file_bytes": "6 MiB", "tokens": tokens}}

    def request(self, method, path, body=None, token="owner", headers=None):
        """(status, headers, bytes) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        try:
            try:
                connection.request(method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all of it was sent: the answer is there to be read
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, **options):
        status, _, data = self.request(method, path, body, **options)
        assert status < 300, (method, path, status, data)
        return json.loads(data) if data else None


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    server.start()
    yield server
    server.stop()


def validate(pointer, value):
    """Checks a value against the schema at a place of the document."""
    jsonschema.Draft202012Validator({"$ref": "urn:api#" + pointer}, registry=REGISTRY).validate(value)


def pointer(*parts):
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


@pytest.fixture
def api(server):
    return Checked(server)


class Checked:
    """Sends requests and holds the answers, and the requests that are right, against the document."""

    def __init__(self, server):
        self.server = server
        self.covered = set()

    def call(self, expected, method, template, body=None, query=None, token="owner", headers=None, **values):
        operation = DOCUMENT["paths"][template][method.lower()]
        path = template
        for name, value in values.items():
            path = path.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
        if query:
            path += "?" + urllib.parse.urlencode(query, doseq=True)
        if expected < 300 and body is not None and not isinstance(body, bytes):
            self.validate_body(method, template, operation, body)
        status, answered, data = self.server.request(method, path, body, token, headers)
        assert status == expected, (method, path, status, data)
        self.validate_answer(method, template, operation, status, answered, data)
        self.covered.add((method, template, str(status)))
        is_json = (answered.get("Content-Type") or "").startswith("application/json")
        return json.loads(data) if data and is_json else data

    def validate_body(self, method, template, operation, body):
        place = pointer("paths", template, method.lower(), "requestBody")
        if "$ref" in operation["requestBody"]:
            place = operation["requestBody"]["$ref"].removeprefix("#")
        validate(place + pointer("content", "application/json", "schema"), body)

    def validate_answer(self, method, template, operation, status, headers, data):
        declared = operation["responses"]
        assert str(status) in declared, f"{method} {template} answered {status}, which is not declared: {data}"
        place = pointer("paths", template, method.lower(), "responses", str(status))
        response = declared[str(status)]
        if "$ref" in response:
            place = response["$ref"].removeprefix("#")
            response = DOCUMENT["components"]["responses"][place.rsplit("/", 1)[1]]
        content = response.get("content")
        if not content:
            assert not data, (method, template, status, data)
        elif "application/json" in content:
            assert headers["Content-Type"].startswith("application/json")
            validate(place + pointer("content", "application/json", "schema"), json.loads(data))
