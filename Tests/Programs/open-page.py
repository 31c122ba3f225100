#!/usr/bin/env python3
"""Opens a page of `stallwatch html` in headless Chromium and uses it by keyboard.

    Tests/Programs/open-page.py PAGE TOP FUNCTION [--screenshot FILE] [--dark]

PAGE is the page, TOP the output of `stallwatch top --json` for the same reports, FUNCTION a function on some but not
all stacks. Checks that nothing is written to the console, that nothing but the page itself is loaded, that its groups
and totals are those of TOP, that the flame graph zooms, goes back and searches by keyboard, that lists and the timeline
work by keyboard, and that a dark page is dark.

Prints figures. Exit status: 0 when all is right, 1 when not, 64 for a wrong argument, 69 when something is missing.
"""

import argparse
import json
import pathlib
import sys

from browser import Page, check_silence, start

from checks import Fault, equal, expect
# After the browser, which finds the Python that has Selenium.
from selenium.webdriver.common.keys import Keys

def check_totals(page, top):
    groups = {
        group["fingerprint"]: [group["count"], group["total"], group["p50"], group["p95"], group["max"], group["cause"]]
        for group in page.script(
            "return stallwatch.groups().map(({fingerprint, count, total, p50, p95, max, cause}) =>"
            " ({fingerprint, count, total, p50, p95, max, cause}))"
        )
    }
    wanted = {
        group["fingerprint"]: [group["count"]]
        + [round(group[name + "Milliseconds"] * 1000) for name in ["total", "p50", "p95", "max"]]
        + [group["cause"]]
        for group in top["groups"]
    }
    equal(groups, wanted, "the groups")
    state = page.state()
    equal(state["total"], round(top["totalMilliseconds"] * 1000), "the flame graph's total")
    equal(state["stalls"], top["reports"], "the number of reports")
    equal(page.script('return document.getElementById("total-stalls").textContent'), f'{top["count"]:,}', "the header's stalls")
    equal(page.script('return document.getElementById("total-groups").textContent'), f'{top["groupCount"]:,}', "the header's groups")


def check_flame(page, function):
    before = page.state()
    page.press("f")
    equal(page.focused(), "flame", "what f goes to")
    inner = page.press(Keys.ARROW_DOWN, Keys.ENTER)
    expect(inner["zoom"] == inner["current"] != before["zoom"], f"Enter does not zoom: {inner}")
    expect(0 < inner["shown"] <= inner["total"], f"the zoomed frame has {inner['shown']}")
    expect(page.script('return !document.getElementById("unzoom").hidden'), "nothing says that it is zoomed")
    equal(page.press(Keys.BACKSPACE), {**before}, "the state after Backspace")

    page.press("/")
    equal(page.focused(), "search", "what / goes to")
    page.press(*function)
    matches = page.script('return document.getElementById("matches").textContent')
    expect(matches and not matches.startswith("0 "), f"the search finds {matches!r}")
    found = page.press(Keys.ENTER)
    equal(found["zoom"], function, "what Enter in the search zooms to")
    expect(found["total"] < before["total"], "the search leaves all stalls")
    page.press(Keys.ESCAPE)
    equal(page.script('return document.getElementById("search").value'), "", "the search after Esc")
    equal(page.press(Keys.ESCAPE)["zoom"], before["zoom"], "the zoom after Esc")
    page.press("/", *"no such function")
    expect(page.script('return document.getElementById("matches").textContent').startswith("0 "), "finds what is not there")
    page.press(Keys.ESCAPE)
    page.script("document.activeElement.blur()")
    equal(page.press("b")["total"], before["total"], "the total of the bottom-up graph")
    equal(page.press("b")["total"], before["total"], "the total of the top-down graph")


def check_lists(page, top):
    page.press("g")
    page.press(Keys.HOME)
    chosen = page.press(Keys.ENTER)
    largest = max(top["groups"], key=lambda group: group["totalMilliseconds"])
    equal(chosen["total"], round(largest["totalMilliseconds"] * 1000), "the flame graph's total for the largest group")
    equal(chosen["stalls"], largest["reports"], "the number of its reports")
    page.script("document.activeElement.blur()")
    equal(page.press(Keys.ESCAPE)["stalls"], top["reports"], "the number of reports after Esc")
    page.press("r", Keys.END, Keys.ENTER)
    shown = page.script('return document.getElementById("detail").textContent')
    shortest = page.script("return Math.min(...stallwatch.data.stalls.duration)")
    # Sorted by duration, the last entry is the shortest.
    expect(page.script("return duration(arguments[0])", shortest) in shown, f"the detail is {shown[:120]!r}")
    page.press("t")
    equal(page.focused(), "timeline", "what t goes to")
    page.press(Keys.HOME)
    first = page.script('return document.getElementById("timeline-words").textContent')
    page.press(Keys.ARROW_RIGHT)
    second = page.script('return document.getElementById("timeline-words").textContent')
    expect(first and second and first != second and first[:23] <= second[:23], f"{first!r} is not before {second!r}")


def brightness(page):
    """Returns the brightness of the page's background, 0 to 255."""
    text = page.script("return getComputedStyle(document.body).backgroundColor")
    parts = [int(part) for part in text[text.index("(") + 1 : text.index(")")].split(",")[:3]]
    return sum(parts) / 3


def main(arguments):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("page")
    parser.add_argument("top")
    parser.add_argument("function")
    parser.add_argument("--screenshot")
    parser.add_argument("--dark", action="store_true")
    try:
        options = parser.parse_args(arguments)
    except SystemExit:
        print(__doc__, file=sys.stderr)
        return 64
    top = json.loads(pathlib.Path(options.top).read_bytes())
    path = pathlib.Path(options.page).resolve()
    driver = start(options.dark)
    try:
        page = Page(driver, path.as_uri())
        if options.screenshot:
            driver.save_screenshot(options.screenshot)
        check_totals(page, top)
        check_flame(page, options.function)
        check_lists(page, top)
        equal(brightness(page) < 64, options.dark, "whether it is dark")
        check_silence(driver, path.as_uri())
        loaded = page.script('return performance.getEntriesByType("navigation")[0].loadEventEnd')
        print(f"{top['reports']} reports, {path.stat().st_size} bytes, loaded in {loaded:.0f} ms")
    except Fault as fault:
        print(fault)
        return 1
    finally:
        driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
