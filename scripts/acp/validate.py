"""Validates recorded messages against the protocol's schemas: validate.py SCHEMAS RECORD...

SCHEMAS is the folder with `schema.json` and `schema.unstable.json`. Each message is validated by its
method, against the stable schema if that defines the method. Every supported method must occur at
least once.
"""

import json
import os
import sys

from jsonschema import Draft202012Validator

SUPPORTED = {
    "initialize", "session/new", "session/load", "session/resume", "session/list", "session/fork",
    "session/close", "session/delete", "session/prompt", "session/cancel", "session/update",
}


class Schema:
    def __init__(self, path):
        with open(path) as file:
            self.whole = json.load(file)
        self.kinds = {}
        for name, schema in self.whole["$defs"].items():
            for ending in ("Request", "Response", "Notification"):
                if "x-method" in schema and name.endswith(ending):
                    self.kinds[schema["x-method"], ending] = name

    def validator(self, name):
        schema = {"$ref": f"#/$defs/{name}", "$defs": self.whole["$defs"]}
        return Draft202012Validator(schema)


def main():
    folder, *records = sys.argv[1:]
    names = ("schema.json", "schema.unstable.json")
    schemas = [Schema(os.path.join(folder, name)) for name in names]
    validators, seen, checked, wrong = {}, set(), 0, []

    def check(method, ending, value, line):
        found = next((it for it in schemas if (method, ending) in it.kinds), None)
        if found is None:
            wrong.append(f"no schema for {method} {ending}: {line}")
            return
        name = found.kinds[method, ending]
        key = (id(found), name)
        validator = validators.setdefault(key, found.validator(name))
        seen.add(method)
        for error in validator.iter_errors(value):
            wrong.append(f"{name}: {error.message[:200]} in {line}")

    for record in records:
        asked = {}
        with open(record) as file:
            for line in file:
                who, text = line.split(" ", 1)
                message = json.loads(text)
                assert message["jsonrpc"] == "2.0", line
                checked += 1
                method, shown = message.get("method"), text[:200]
                if method and "id" in message:
                    asked[who, message["id"]] = method
                    check(method, "Request", message["params"], shown)
                elif method:
                    check(method, "Notification", message["params"], shown)
                elif "error" in message:
                    error = schemas[1].validator("Error")
                    wrong += [it.message for it in error.iter_errors(message["error"])]
                else:
                    other = "client" if who == "agent" else "agent"
                    check(asked[other, message["id"]], "Response", message["result"], shown)
    assert not wrong, "\n".join(wrong[:20])
    assert SUPPORTED <= seen, f"methods that never occurred: {SUPPORTED - seen}"
    print(f"{checked} messages are valid")


main()
