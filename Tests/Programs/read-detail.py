#!/usr/bin/env python3
"""Reads what a page of `stallwatch html` shows of one stall, and copies it.

    Tests/Programs/read-detail.py PAGE WORDS LOOPS SOURCE

PAGE is a page whose longest stall has everything that a report can have, WORDS a file with the texts that its detail has
to show, one a line. LOOPS is the number of loops, all but the first nearly empty, and SOURCE the culprit's file. Checks
that each text is shown as text; that runtime frames are folded and the lock's owner is open; that the first screen has the
list, the stack and the source; the flame chart, links and times; that the copy has at most 60 lines and lands in the
clipboard; that all loops can be shown; and which stall is the worst.

Prints figures. Exit status: 0 when all is right, 1 when not, 64 for a wrong argument, 69 when something is missing.
"""

import pathlib
import sys
import urllib.parse

from browser import Page, check_silence, run
from checks import equal, expect
# After the browser, which finds the Python that has Selenium.
from selenium.webdriver.common.keys import Keys

MAXIMUM_LINES = 60


def check_detail(page, words):
    detail = page.text("detail")
    for line in words:
        expect(line in detail, f"the detail has no {line!r}: {detail!r}")
    equal(page.script("return window.wasRun === undefined"), True, "whether no text of a report was run")
    equal(page.script("return document.querySelectorAll('#detail img, #detail b').length"), 0, "markup from a report")
    folded = page.script("return [...document.querySelectorAll('#detail .folded summary')].map((each) => each.textContent)")
    equal(folded, ["2 runtime frames"], "the folded frames")
    kernel = page.script("return [...document.querySelectorAll('#detail .kernel .function')].map((each) => each.textContent)")
    equal(kernel, ["futex_do_wait", "do_futex"], "the functions of the kernel")
    widths = "return [...document.querySelectorAll('#detail .history .loop')].map((loop) => [...loop.querySelectorAll('.turns span')].length)"
    equal(page.script(widths), [3, 1], "the turns of each loop")
    left = "return getComputedStyle(document.querySelector('#detail .history .stalled')).left"
    expect(float(page.script(left).removesuffix("px")) > 0, "the stall begins where the history does")
    # The owner's source comes first: that is the code to change.
    blamed = page.script("return [...document.querySelectorAll('#detail .source .blamed')].map((each) => each.textContent.trim())")
    expect(len(blamed) == 2 and blamed[0].endswith("ledger.add(price)") and "ledger.lock()" in blamed[1], f"the blamed lines are {blamed}")
    closed = page.script("return [...document.querySelectorAll('#detail details:not([open]) .kernel')].length")
    equal(closed, 1, "the folded functions of the kernel")
    sizes = page.script(
        """const size = (each) => parseFloat(getComputedStyle(each).fontSize), all = [...document.querySelectorAll("#detail *")];
        return [size(document.querySelector("#detail .why")), Math.max(...all.filter((each) => !each.closest(".why, .try")).map(size))]"""
    )
    expect(sizes[0] > sizes[1], f"the sentence has {sizes[0]} pixels, and something else {sizes[1]}")


def check_worst(page):
    """The page opens on a stall that lasts, else on one that was left, else on a deadlock, else on the longest."""
    opened = page.script(
        """const shortest = stalls.duration.indexOf(Math.min(...stalls.duration)), number = (word) => data.strings.push(word) - 1;
        const opened = [worstOf(allStalls) === chosenStall && stalls.duration[chosenStall] === Math.max(...stalls.duration)];
        for (const [column, word] of [["cause", "deadlock"], ["state", "abandoned"], ["state", "ongoing"]]) {
          const stall = shortest + opened.length - 1;
          stalls[column][stall] = number(word);
          opened.push(worstOf(allStalls) === stall);
        }
        return opened;"""
    )
    equal(opened, [True] * 4, "whether the longest, a deadlock, an abandoned and an ongoing stall are opened")


def check_first_screen(page, driver):
    """At 1280 × 900 the list, the blamed source line, the app's frames and the chips are seen without scrolling."""
    page.resize(1280)
    equal(page.script("return [scrollY, document.getElementById('detail').scrollTop]"), [0, 0], "what is scrolled")
    lowest = page.script("return Math.min(innerHeight, document.getElementById('detail').getBoundingClientRect().bottom)")
    for what in ["#groups .row", "#detail .source .blamed", "#detail .stack .app", "#detail .try, #detail .why", "#causes button"]:
        box = page.script("const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.top, box.bottom]", what)
        expect(0 < box[0] < box[1] <= lowest, f"{what} is at {box}, and the first screen ends at {lowest}")
    rows = page.script("return document.querySelector('#groups .rows').clientHeight")
    expect(rows > 5 * 44, f"the list has {rows} pixels")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def check_owner(page):
    """The lock's owner is open, with its function and line."""
    owner = page.script(
        """const heads = [...document.querySelectorAll("#detail details[open] > summary")].map((each) => each.textContent);
        return heads.find((words) => words.startsWith("held by"))"""
    )
    expect(owner is not None and owner.endswith("in Writer.flush() (Wallet.swift:4)"), f"the owner is {owner!r}")


def check_chart(page):
    """The samples are a flame chart: in order of time, below the last caller that all have."""
    nodes = page.script(
        """const list = [], visit = (node) => { list.push(node); node.children.forEach(visit); };
        visit(timeTree(sharesOf(chosenStall)));
        return list.map((node) => [node.depth, functionName(node).split(" ")[0], node.begin / 1000, node.total / 1000]);"""
    )
    wanted = [
        [0, "this", 0, 60_000], [1, "pay()", 0, 60_000], [2, "total()", 0, 375], [2, "pthread_mutex_lock", 375, 59_625],
        [3, "futex_wait", 375, 59_625],
    ]
    equal(nodes, wanted, "the nodes of the chart")
    equal(page.script("return document.querySelector('#chart canvas').clientHeight"), 4 * 19 + 6, "the height of the chart")


def check_links(page, source):
    """Places are paths from the package's root, and link to the file, or to what --link says."""
    link = page.script("const link = document.querySelector('#detail .where a'); return [link.textContent, link.href]")
    equal(link, ["Sources/Notes App/Wallet.swift:3", "file://" + urllib.parse.quote(source)], "the place's link")
    equal(page.script("return document.querySelector('#detail .stack .app a').href"), link[1], "the link of a frame")
    made = page.script(
        """const before = data.link;
        data.link = "https://example.org/{path}#L{line}";
        const made = ["/a/.build/checkouts/swift-nio/Sources/NIO/A b.swift:7", "/a/Sources/x/Tests/y#.swift:8", "lib/a.c:9", "libc.so.6"]
          .map((place) => { const link = placeLink(place, "x"); return link.href || link; });
        data.link = before;
        return [...made, placeLink("lib/a.c:9", "x")];"""
    )
    wanted = ["swift-nio/Sources/NIO/A%20b.swift#L7", "Sources/x/Tests/y%23.swift#L8", "lib/a.c#L9"]
    equal(made, ["https://example.org/" + path for path in wanted] + ["x", "x"], "the links that are made")


def check_time(driver, address):
    """The reader's own time stands beside UTC, with its day where that is another."""
    for zone, words in [
        ("Asia/Kolkata", "2026-11-21 08:00:10.000 UTC (13:30:10 UTC+05:30)"),
        ("Pacific/Honolulu", "2026-11-21 08:00:10.000 UTC (2026-11-20 22:00:10 UTC-10:00)"),
        ("UTC", "2026-11-21 08:00:10.000 UTC"),
    ]:
        driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
        page = Page(driver, address)
        equal(page.script("return factsOf(chosenStall)[0]"), ["began", words], f"the time in {zone}")


def check_copy(page, driver):
    driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.script("window.focus(); document.activeElement.blur()")
    page.press("c")
    page.wait("document.getElementById('copy').textContent !== 'Copy as Markdown'", "the copy's end")
    copied = page.script("return stallwatch.markdown()")
    if page.text("copy") == "Copied":
        read = driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], (error) => arguments[0](String(error)))")
        equal(read, copied, "what is in the clipboard")
    else:
        equal(page.script("return document.querySelector('#detail textarea').value"), copied, "what can be copied by hand")
    lines = copied.splitlines()
    expect(0 < len(lines) <= MAXIMUM_LINES, f"the copy has {len(lines)} lines")
    expect(lines[0].startswith("### main stalled for 1 min 0 s in pay"), f"the copy begins with {lines[0]!r}")
    expect("<script>" not in lines[0].replace("\\<", ""), "the copy's title has markup")
    expect(any("futex_do_wait" in line for line in lines), "the copy has no stack")


def check_loops(page, loops):
    expect(page.is_shown("all-loops"), "nothing says that there are more loops")
    equal(page.text("all-loops"), f"Show all {loops} loops", "the button for all loops")
    hidden = "return [stallwatch.timeline.hiddenLanes, document.getElementById('timeline').clientHeight]"
    # The first one has nearly all of the time, and the second the rest of 95 %.
    equal(page.script(hidden), [loops - 2, 20 + 2 * 28], "the hidden loops at first, and the timeline's height")
    # The loop of a chosen stall is shown, too.
    page.script("document.activeElement.blur()")
    page.press("r", Keys.END, Keys.ENTER)
    equal(page.script(hidden), [loops - 3, 20 + 3 * 28], "the hidden loops with that of a chosen stall")
    page.script("document.getElementById('all-loops').click()")
    equal(page.script(hidden), [0, 20 + loops * 28], "the hidden loops after a click")
    equal(page.script("return document.getElementById('all-loops').getAttribute('aria-expanded')"), "true", "whether it is expanded")


def check(driver, path, words, loops, source):
    address = pathlib.Path(path).resolve().as_uri()
    words = pathlib.Path(words).read_text().splitlines()
    page = Page(driver, address)
    check_detail(page, words)
    check_first_screen(page, driver)
    check_owner(page)
    check_chart(page)
    check_links(page, source)
    check_copy(page, driver)
    check_loops(page, int(loops))
    check_worst(Page(driver, address))
    check_silence(driver, address)
    check_time(driver, address)
    return f"{len(words)} texts"


if __name__ == "__main__":
    sys.exit(run(check, __doc__, sys.argv[1:]))
