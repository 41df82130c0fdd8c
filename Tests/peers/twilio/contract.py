"""Answers held against the service's own OpenAPI document: the whole one where it lies beside the repository, or the
excerpt in `fixture`. `python contract.py DOCUMENT` makes the excerpt anew."""
import json
import os
import pathlib
import re
import sys
import urllib.parse

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHARED = pathlib.Path(os.environ.get("FERRY_SHARED", ROOT.parent / "shared"))
DOCUMENT = SHARED / "protocols/spec/twilio_conversations_v1.json"
EXCERPT = pathlib.Path(__file__).parent / "fixture/conversations_v1.json"
# What the facade does not offer.
LEFT_OUT = re.compile(r"/Addresses|/Credentials|/Bindings|/Configuration/Notifications")
# Keys that real answers do not always have.
SOMETIMES = {"chat_service_sid", "bindings", "links", "content_sid"}


def excerpt(document):
    """The schemas of the answers, without words: what a schema is and which keys the documented examples have."""
    paths, requests = {}, {}
    for path, item in document["paths"].items():
        if LEFT_OUT.search(path):
            continue
        for verb in ("get", "post", "delete"):
            if verb in item:
                requests.setdefault(path, {})[verb.upper()] = parameters(item[verb], document)
            for status, answer in item.get(verb, {}).get("responses", {}).items():
                content = answer.get("content", {}).get("application/json", {})
                schema = inlined(content.get("schema"), document) if content else None
                for example in content.get("examples", {}).values():
                    allow_nulls(schema, example["value"])
                keys = [sorted(example["value"]) for example in content.get("examples", {}).values()]
                paths.setdefault(path, {})[f"{verb.upper()} {status}"] = {
                    "schema": schema, "keys": sorted(set.intersection(*map(set, keys))) if keys else []}
    return {
        "notice": [
            "An excerpt, made by contract.py, of twilio_conversations_v1.json of https://github.com/twilio/twilio-oai: "
            "the schemas of requests and answers, without descriptions and examples.",
            "The repository's licence: MIT License, Copyright (C) 2023, Twilio, Inc. Its text is in LICENSE-MIT beside.",
            "The document's own info.license: Apache 2.0, https://www.apache.org/licenses/LICENSE-2.0.html"],
        "paths": paths, "requests": requests}


def parameters(operation, document):
    """What a request may carry: in its query, in its form, and which of these it must."""
    query = {each["name"]: inlined(each["schema"], document)
             for each in operation.get("parameters", []) if each["in"] == "query"}
    content = operation.get("requestBody", {}).get("content", {})
    form = content.get("application/x-www-form-urlencoded", {}).get("schema", {})
    fields = {name: inlined(each, document) for name, each in form.get("properties", {}).items()}
    return {"query": query, "form": fields, "required": form.get("required", [])}


def allow_nulls(schema, example):
    """The document's own examples have nulls where its schemas forget them."""
    for name, value in example.items():
        known = schema.get("properties", {}).get(name)
        if value is None and known is not None:
            if isinstance(known.get("type"), str):
                known["type"] = [known["type"], "null"]
            if None not in known.get("enum", [None]):
                known["enum"].append(None)


def inlined(schema, document):
    """The schema as JSON Schema has it, references put in, nullable turned into a type."""
    if isinstance(schema, list):
        return [inlined(each, document) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inlined(document["components"]["schemas"][schema["$ref"].split("/")[-1]], document)
    keep = ("type", "properties", "items", "enum", "pattern", "minLength", "maxLength", "format", "required")
    made = {key: schema[key] for key in keep if key in schema}
    if "properties" in made:
        made["properties"] = {name: inlined(each, document) for name, each in made["properties"].items()}
    if "items" in made:
        made["items"] = inlined(made["items"], document)
    if schema.get("nullable"):
        if "type" in made:
            made["type"] = [made["type"], "null"]
        if "enum" in made:
            made["enum"] = made["enum"] + [None]
    return made


def load():
    if DOCUMENT.exists():
        return excerpt(json.loads(DOCUMENT.read_text(encoding="utf-8")))
    return json.loads(EXCERPT.read_text(encoding="utf-8"))


CHECKER = jsonschema.FormatChecker(formats=())


@CHECKER.checks("date-time")
def is_whole_second(value):
    return not isinstance(value, str) or bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value))


@CHECKER.checks("uri")
def is_absolute(value):
    return not isinstance(value, str) or bool(urllib.parse.urlsplit(value).netloc)


class Contract:
    def __init__(self):
        document = load()
        self.paths = document["paths"]
        self.requests = document["requests"]
        self.counts = {}
        self.asked = {}
        # A name may hold slashes, but only where nothing else fits; then the longest path that does.
        longest = sorted(self.paths, key=lambda path: -path.count("/"))
        self.patterns = [
            (re.compile(re.sub(r"\\{\w+\\}", part, re.escape(path))), path)
            for part in ("[^/]+", ".+") for path in longest]

    def found(self, path):
        found = next((name for pattern, name in self.patterns if pattern.fullmatch(path)), None)
        assert found, f"{path} is not in the document"
        return found

    def check_request(self, method, url, form):
        """Holds what a client sends against the parameters that the document declares."""
        parts = urllib.parse.urlsplit(url)
        found = self.found(parts.path)
        declared = self.requests[found].get(method)
        assert declared is not None, f"{method} {found} is not declared"
        self.asked[(method, found)] = self.asked.get((method, found), 0) + 1
        # A page's own address is followed as it was given.
        given = {"query": parts.query, "form": form}
        for place, text in given.items():
            for name, value in urllib.parse.parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text)):
                schema = declared[place].get(name)
                assert schema is not None, f"{method} {found} has no {name} in its {place}"
                self.check_value(f"{method} {found} {name}", schema, value)
        names = {name for name, _ in urllib.parse.parse_qsl(form, keep_blank_values=True)}
        missing = set(declared["required"]) - names
        assert not missing, f"{method} {found} lacks {missing}"

    @staticmethod
    def check_value(what, schema, text):
        """Everything is text in a form: it is read as what the schema says."""
        schema = schema.get("items", schema)
        kinds = schema.get("type", "string")
        if "integer" in kinds:
            assert re.fullmatch(r"-?\d+", text), (what, text)
            text = int(text)
        jsonschema.Draft202012Validator({**schema, "type": ["string", "integer"]}, format_checker=CHECKER).validate(text)

    def check(self, method, url, status, body):
        found = self.found(urllib.parse.urlsplit(url).path)
        if status >= 400:
            answer = json.loads(body)
            assert answer["status"] == status and isinstance(answer["code"], int), answer
            assert answer["more_info"].endswith(f"/errors/{answer['code']}") and answer["message"], answer
            return
        declared = self.paths[found].get(f"{method} {status}")
        assert declared is not None, f"{method} {found} is not declared to answer {status}"
        self.counts[(method, found, status)] = self.counts.get((method, found, status), 0) + 1
        if declared["schema"] is None:
            assert not body, (method, path, body)
            return
        answer = json.loads(body)
        jsonschema.Draft202012Validator(declared["schema"], format_checker=CHECKER).validate(answer)
        missing = set(declared["keys"]) - set(answer)
        assert not missing, f"{method} {found} lacks {missing}"
        for record in self.records(declared["schema"], answer):
            schema, value = record
            missing = set(schema.get("properties", {})) - set(value) - SOMETIMES
            assert not missing, f"{method} {found} lacks {missing}"
            unknown = set(value) - set(schema.get("properties", {})) - SOMETIMES
            assert not unknown, f"{method} {found} has {unknown}, which the document does not know"

    @staticmethod
    def records(schema, answer):
        """Each record of a list, or the answer itself."""
        if "meta" not in answer:
            return [(schema, answer)]
        key = answer["meta"]["key"]
        return [(schema["properties"][key]["items"], record) for record in answer[key]]

    def missing(self):
        declared = {
            (*answer.split(" "), path) for path, answers in self.paths.items() for answer in answers}
        # 202 is for what takes long, which nothing here does.
        return {
            (verb, path, int(status)) for verb, status, path in declared
            if (verb, path, int(status)) not in self.counts and status != "202"}


if __name__ == "__main__":
    document = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    EXCERPT.write_text(json.dumps(excerpt(document), indent=0, sort_keys=True) + "\n", encoding="utf-8")
