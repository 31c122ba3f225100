#!/usr/bin/env python3
"""Reads a page of `stallwatch html --compare BEFORE AFTER`.

    Tests/Programs/compare-page.py PAGE DIFF

PAGE is the page, DIFF the output of `stallwatch diff --json` for the same reports. Checks the rates of both sides, overall
and of each group, that what is new or worse comes first, that a frame that only became worse is red and one that only became better is blue, and that each side
can be shown by itself.

Prints figures. Exit status: 0 when all is right, 1 when not, 64 for a wrong argument, 69 when something is missing.
"""

import json
import pathlib
import sys

from browser import Page, check_silence, run
from checks import equal, expect


def check(driver, path, diff):
    address = pathlib.Path(path).resolve().as_uri()
    diff = json.loads(pathlib.Path(diff).read_text())
    page = Page(driver, address)
    for side, part in [("before", diff["base"]), ("after", diff["new"])]:
        shown = page.text("total-" + side)
        wanted = page.script("return rateText(arguments[0])", part["totalMilliseconds"] / part["hours"])
        equal(shown, wanted, f"the stalled time per hour {side}")
    heads = page.script("return [...document.querySelectorAll('#groups .head button:not([hidden])')].map((each) => each.textContent)")
    expect({"before", "after"} <= set(heads), f"the groups have the columns {heads}")
    # What is new or worse comes first, by the rule of `stallwatch diff`, and a stall of its first group is open.
    order = ["new", "worse", "new?", "better", "gone", "gone?", "same"]
    rows = page.script("return [...document.querySelectorAll('#groups .row')].map((row) => order(row.children[1].textContent))".replace(
        "order(", f"{order}.indexOf("))
    words = [change["change"] + ("?" if change["mayBeChance"] else "") for change in diff["changes"]]
    equal(rows[:1], [min(order.index(word) for word in words)], "the first group's change")
    equal(rows, sorted(rows), "the order of the groups")
    equal(page.script("return stalls.side[chosenStall]"), 1, "the side of the stall that is open")
    # Reading the colours is what the browser warns of.
    check_silence(driver, address)
    # The colours of the widest frames that are on one side only.
    colours = page.script(
        """const found = {};
        const canvas = document.getElementById("flame"), context = canvas.getContext("2d");
        const ratio = devicePixelRatio, root = stallwatch.flame.root, waiting = [root];
        while (waiting.length > 0) {
          const node = waiting.shift();
          waiting.push(...node.children);
          const [before, after] = node.sideTimes;
          const side = before === 0 ? "after" : after === 0 ? "before" : "both";
          const left = node.begin / root.total * canvas.clientWidth, width = node.total / root.total * canvas.clientWidth;
          if (found[side] || width < 12 || node.depth === 0) continue;
          const [red, , blue] = context.getImageData((left + width - 4) * ratio, (node.depth * 19 + 3) * ratio, 1, 1).data;
          found[side] = red - blue;
        }
        return found;"""
    )
    expect(colours.get("after", 0) > 60, f"what is new is not red: {colours}")
    expect(colours.get("before", 0) < -60, f"what is gone is not blue: {colours}")
    every = page.state()["stalls"]
    parts = []
    for side in [0, 1]:
        page.script(
            "const select = document.getElementById('filter-side'); select.value = arguments[0];"
            "select.dispatchEvent(new Event('change'))", str(side),
        )
        parts.append(page.state()["stalls"])
    equal(sum(parts), every, "the stalls of both sides")
    equal(parts, [diff["base"]["reports"], diff["new"]["reports"]], "the stalls of each side")
    return f"{parts[0]} and {parts[1]} reports"


if __name__ == "__main__":
    sys.exit(run(check, __doc__, sys.argv[1:]))
