#!/usr/bin/env python3
"""Counts the results in a summary of the scenarios, and lists those that are not right.

    count-scenarios.py SUMMARY NAME [SCENARIO...]

Prints the counts with NAME before them. Exit status: 0 if something was judged and all is right, except the named
scenarios, which may be wrong; 1 if not.
"""

import json
import sys

path, name, *may_be_wrong = sys.argv[1:]
with open(path) as file:
    results = json.load(file)
unjudged = ("not-available", "inconclusive")
judged = [result for result in results if result["result"] not in unjudged]
right = [result for result in judged if result["result"] == "ok"]
wanted = [result for result in judged if result["expectedFunction"]]
named = [result for result in wanted if result["blamedFunction"] == result["expectedFunction"]]
print(
    f"{name}: starts, {len(right)} of {len(judged)} scenarios right, {len(named)} of {len(wanted)} functions right, "
    f"{len(results) - len(judged)} not judged"
)
for result in results:
    if result["result"] != "ok":
        print(f"  {result['scenario']}: {result['result']}, {result['blamedFunction']}, {result['cause']}")
wrong = {result["scenario"] for result in judged if result["result"] != "ok"} - set(may_be_wrong)
sys.exit(0 if judged and not wrong else 1)
