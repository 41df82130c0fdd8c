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
    paths = {}
    for path, item in document["paths"].items():
        if LEFT_OUT.search(path):
            continue
        for verb in ("get", "post", "delete"):
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
            "the schemas of the answers, without descriptions and examples.",
            "The repository's licence: MIT License, Copyright (C) 2023, Twilio, Inc. Its text is in LICENSE-MIT beside.",
            "The document's own info.license: Apache 2.0, https://www.apache.org/licenses/LICENSE-2.0.html"],
        "paths": paths}


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
        self.paths = load()["paths"]
        self.counts = {}
        # A name may hold slashes, but only where nothing else fits; then the longest path that does.
        longest = sorted(self.paths, key=lambda path: -path.count("/"))
        self.patterns = [
            (re.compile(re.sub(r"\\{\w+\\}", part, re.escape(path))), path)
            for part in ("[^/]+", ".+") for path in longest]

    def check(self, method, url, status, body):
        path = urllib.parse.urlsplit(url).path
        found = next((name for pattern, name in self.patterns if pattern.fullmatch(path)), None)
        assert found, f"{path} is not in the document"
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
