#!/usr/bin/env python3
"""Validates stall reports against Schemas/stall-report.schema.json with the jsonschema package.

    Tests/Programs/validate-reports.py [--strict] PATH...

Each PATH is a report, an NDJSON file with one report per line, or a directory with reports. With --strict, a field or a
word that the schema does not list is also a fault: the schema must document everything that this repository writes.

Prints the number of valid reports. Exit status: 0 if all are valid and there is at least one, 1 if not, 64 for a wrong
argument, 69 if jsonschema is missing (Debian: python3-jsonschema).
"""

import json
import pathlib
import sys

from checks import REPOSITORY, begin_again

try:
    from jsonschema import Draft202012Validator
except ImportError as missing:
    begin_again(missing)

SCHEMA = REPOSITORY / "Schemas" / "stall-report.schema.json"


def strict(node):
    """Returns the schema with closed objects and fixed vocabularies."""
    if isinstance(node, list):
        return [strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {key: strict(value) for key, value in node.items()}
    words = node.get("x-words")
    if words and node.get("type") == "string":
        closed["enum"] = words
    elif words:
        closed["propertyNames"] = {"enum": words}
    if "properties" in node and node.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def reports(path):
    """Yields each report at a path, with its name."""
    if path.is_dir():
        for file in sorted(path.glob("stall-*.json")):
            yield file.name, json.loads(file.read_bytes())
    elif ".ndjson" in path.name:
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            yield f"{path.name}:{number}", json.loads(line)
    else:
        yield path.name, json.loads(path.read_bytes())


def main(arguments):
    is_strict = arguments[:1] == ["--strict"]
    paths = [pathlib.Path(argument) for argument in arguments[1 if is_strict else 0 :]]
    if not paths or not all(path.exists() for path in paths):
        print(__doc__, file=sys.stderr)
        return 64
    schema = json.loads(SCHEMA.read_bytes())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(strict(schema) if is_strict else schema)
    valid = faulty = 0
    for path in paths:
        for name, report in reports(path):
            errors = list(validator.iter_errors(report))
            for error in errors:
                print(f"{name}: {error.json_path}: {error.message[:300]}", file=sys.stderr)
            if errors:
                faulty += 1
            else:
                valid += 1
    print(f"{valid} valid, {faulty} faulty")
    return 0 if valid > 0 and faulty == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
