#!/usr/bin/env python3
"""Reads what a page of `stallwatch html` shows of one stall, and copies it.

    Tests/Programs/read-detail.py PAGE WORDS LOOPS

PAGE is a page whose longest stall has everything that a report can have, WORDS a file with the texts that its detail has
to show, one a line. LOOPS is the number of loops, more than fit on the timeline. Checks that each text is shown as text,
that runtime frames are folded, that the copy has at most 60 lines and lands in the clipboard, and that all loops can be
shown.

Prints figures. Exit status: 0 when all is right, 1 when not, 64 for a wrong argument, 69 when something is missing.
"""

import pathlib
import sys

from browser import Page, check_silence, start
from checks import Fault, equal, expect

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
    blamed = page.text("detail").count("ledger.lock()")
    equal(blamed, 1, "how often the blamed source line is there")


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
    hidden = "const scroll = document.getElementById('timeline-scroll'); return scroll.scrollHeight - scroll.clientHeight"
    expect(page.script(hidden) > 0, "all loops are shown at first")
    page.script("document.getElementById('all-loops').click()")
    equal(page.script(hidden), 0, "the hidden part of the timeline")
    equal(page.script("return document.getElementById('all-loops').getAttribute('aria-expanded')"), "true", "whether it is expanded")


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    address = pathlib.Path(arguments[0]).resolve().as_uri()
    words = pathlib.Path(arguments[1]).read_text().splitlines()
    driver = start()
    try:
        page = Page(driver, address)
        check_detail(page, words)
        check_copy(page, driver)
        check_loops(page, int(arguments[2]))
        check_silence(driver, address)
        print(f"{len(words)} texts")
    except Fault as fault:
        print(fault)
        return 1
    finally:
        driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
