#!/usr/bin/env python3
"""Uses a page of `stallwatch html` at several widths, light and dark: filters, address, timeline, layout, accessibility.

    Tests/Programs/use-page.py PAGE REPORTS TOP AXE

PAGE is the page of the NDJSON file REPORTS, TOP the output of `stallwatch top --json` for it, AXE the file axe.min.js. Checks that the groups and totals are those of TOP; that the flame graph, the
lists and the timeline work by keyboard; that each filter leaves the stalls that it should, counted in REPORTS; that the address after # shows the same
view again and Back the one before; that a brush on the timeline zooms; in which order Esc undoes; that a click on the harm ranks by it; that the page fits its
width, with a stall first on a phone; what a group's row and its own view show; what a click on a total shows; that colours
differ and a dark page is dark; that nothing is cut off on paper; that axe finds no fault; and that nothing is on the console or loaded from elsewhere.

Prints figures. Exit status: 0 when all is right, 1 when not, 64 for a wrong argument, 69 when something is missing.
"""

import datetime
import json
import pathlib
import sys

from browser import Page, check_silence, run, texts_without_scripts
from checks import equal, expect
# After the browser, which finds the Python that has Selenium.
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

WIDTHS = [390, 600, 800, 1024, 1280, 1920]
# A page with no more reports has the list above the stall, over the whole width.
FEW = 5
# The layout of a page with more reports is checked with a group beside the lists, of one with fewer with a stall.
MANY = 100
HOSTILE = (
    "q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&loop=__proto__&process=%00&metadata=constructor&min=1e9&side=7"
    "&cause=cpu&group=%3Cscript%3E&function=%22%3E&time=9,1&stall=..%2F..&list=nothing&zoom=99.0.x&up=2"
)


def count(reports, condition):
    return sum(1 for report in reports if condition(report))


def functions(report):
    return {frame.get("function") for frame in report["frames"]}


def begin(report):
    """The time of a report in microseconds."""
    time = datetime.datetime.fromisoformat(report["startedAt"].removesuffix("Z"))
    return (time - datetime.datetime(2026, 1, 1)) // datetime.timedelta(microseconds=1)


def choose(page, name, value):
    """Chooses a value of a filter by its text; an empty one chooses none."""
    page.script(
        """const select = document.getElementById("filter-" + arguments[0]);
        const option = [...select.options].find((option) => option.textContent === arguments[1]) || select.options[0];
        select.value = option.value; select.dispatchEvent(new Event("change"));""",
        name, value,
    )
    return page.state()["stalls"]


def search(page, words):
    page.press("/")
    equal(page.focused(), "search", "what / goes to")
    page.script("document.activeElement.value = arguments[0]; document.activeElement.dispatchEvent(new Event('input'))", words)
    return page.state()["stalls"]


def microseconds(group, name):
    return round(group[name + "Milliseconds"] * 1000)


def check_groups(page, top):
    """The page counts the same stalls as `top`."""
    columns = ["count", "total", "p50", "p95", "max", "cause"]
    groups = {group["fingerprint"]: [group[name] for name in columns] for group in page.script(
        "return stallwatch.groups().map(({fingerprint, count, total, p50, p95, max, cause}) =>"
        " ({fingerprint, count, total, p50, p95, max, cause}))")}
    wanted = {
        group["fingerprint"]: [group["count"], *(microseconds(group, name) for name in columns[1:-1]), group["cause"]]
        for group in top["groups"]
    }
    equal(groups, wanted, "the groups")
    state = page.state()
    equal(state["total"], microseconds(top, "total"), "the flame graph's total")
    equal(state["stalls"], top["reports"], "the number of reports")
    equal(page.text("total-stalls"), f'{top["count"]:,}', "the header's stalls")
    equal(page.text("total-groups"), f'{top["groupCount"]:,}', "the header's groups")


def check_keys(page):
    """The flame graph, the list of reports and the timeline work by keyboard."""
    before = page.state()
    page.press("f")
    equal(page.focused(), "flame", "what f goes to")
    inner = page.press(Keys.ARROW_DOWN, Keys.ENTER)
    expect(inner["zoom"] == inner["current"] != before["zoom"], f"Enter does not zoom: {inner}")
    expect(0 < inner["shown"] <= inner["total"], f"the zoomed frame has {inner['shown']}")
    expect(page.is_shown("unzoom"), "nothing says that it is zoomed")
    equal(page.press(Keys.BACKSPACE), before, "the state after Backspace")
    for direction in ["bottom-up", "top-down"]:
        equal(page.press("b")["total"], before["total"], f"the total of the {direction} graph")
    page.press("r", Keys.END, Keys.ENTER)
    # Sorted by duration, the last entry is the shortest.
    shortest = page.script("return duration(Math.min(...stallwatch.data.stalls.duration))")
    expect(shortest in page.text("detail"), f"the detail is {page.text('detail')[:120]!r}")
    page.press("t")
    equal(page.focused(), "timeline", "what t goes to")
    page.press(Keys.HOME)
    first = page.text("timeline-words")
    page.press(Keys.ARROW_RIGHT)
    second = page.text("timeline-words")
    expect(first and second and first != second and first[:23] <= second[:23], f"{first!r} is not before {second!r}")
    page.press("g", Keys.END, Keys.ENTER)
    row = page.script("return document.querySelector('#groups .rows').getAttribute('aria-activedescendant')")
    equal(row, page.script("return 'groups-' + (groupList.items.length - 1)"), "the current row after its group was chosen")
    # The stall's own region scrolls, and so has the focus.
    page.press(Keys.ENTER)
    page.script("document.getElementById('tab-detail').click(); document.getElementById('detail').focus()")
    style = page.script("return getComputedStyle(document.getElementById('detail')).outlineStyle")
    equal([page.focused(), style], ["detail", "solid"], "the focus on the stall")
    view = page.hash()
    page.script("document.querySelector('.skip').click()")
    equal([page.focused(), page.hash()], ["flame", view], "where the skip link goes, and the address after it")


def check_filters(page, reports, function):
    every = len(reports)
    withFunction = count(reports, lambda report: function in functions(report))
    equal(search(page, function.lower()), withFunction, "the stalls that a search leaves")
    first = page.script("return [searchTest(arguments[0])(chosenStall), groupList.items[0].longest === chosenStall]", function)
    equal(first, [True, True], "whether a search opens the longest stall of the first group that it finds")
    equal(page.script("return document.querySelector('#detail h2').textContent === sentence(chosenStall)"), True, "whether it is shown")
    key, value = next(iter(reports[0]["metadata"].items()))
    same = count(reports, lambda report: value in report["metadata"].get(key, ""))
    equal(search(page, f"{key}={value}"), same, "the stalls with the searched metadata")
    equal(search(page, "no such thing"), 0, "the stalls that a search for nothing leaves")
    expect(page.text("matches").startswith("0 "), f"a search for nothing finds {page.text('matches')!r}")
    equal(page.text("detail"), "No stall matches “no such thing”.", "what a search for nothing opens")
    expect(page.is_shown("clear"), "nothing brings the stalls back")
    page.press(Keys.ESCAPE)
    equal(page.state()["stalls"], every, "the stalls after Esc in the search")
    expect(page.focused() != "search", "Esc does not leave the search")
    expect(page.script("return document.querySelector('#detail h2') !== null"), "no stall is shown after Esc")

    loop = reports[0]["loop"]["label"]
    of_loop = count(reports, lambda report: report["loop"]["label"] == loop)
    if of_loop < every:
        equal(choose(page, "loop", loop), of_loop, f"the stalls of {loop}")
        expect(page.text("shown").startswith(f"{of_loop:,} of {every:,} report"), f"it says {page.text('shown')!r}")
        # Two filters at once.
        both = count(reports, lambda report: report["loop"]["label"] == loop and function in functions(report))
        equal(search(page, function), both, f"the stalls of {loop} with the function")
        page.press(Keys.ESCAPE)
        choose(page, "loop", "")
    for minimum, words in [(500, "≥ 500 ms"), (5000, "≥ 5.00 s")]:
        longer = count(reports, lambda report: report["durationMilliseconds"] >= minimum)
        if 0 < longer < every and page.script(
            "return [...document.getElementById('filter-minimum').options].some((each) => each.textContent === arguments[0])", words
        ):
            equal(choose(page, "minimum", words), longer, f"the stalls {words}")
            choose(page, "minimum", "")
    cause = reports[0]["cause"]["kind"]
    page.script("document.querySelector('[data-cause=\"' + arguments[0] + '\"]').click()", cause)
    of_cause = count(reports, lambda report: report["cause"]["kind"] == cause)
    equal(page.state()["stalls"], of_cause, f"the stalls by {cause}")
    page.script("document.querySelector('[data-cause=\"' + arguments[0] + '\"]').click()", cause)
    equal(page.state()["stalls"], every, "the stalls after a second click")
    return withFunction


def check_frame(page, reports, function, wanted):
    """From a frame of the flame graph to its stalls."""
    search(page, function)
    page.press(Keys.ENTER)
    page.script("document.activeElement.blur()")
    equal(page.state()["current"], function, "the current frame")
    equal(page.state()["zoom"], function, "what Enter in the search zooms to")
    page.press("s")
    page.script("document.activeElement.blur()")
    equal(page.state()["stalls"], wanted, "the stalls of the frame")
    expect(page.is_shown("chip-function"), "nothing says that only a frame's stalls are shown")
    search(page, "")
    page.press(Keys.ESCAPE)
    equal(page.state()["stalls"], wanted, "the stalls of the frame without the search")
    page.script("document.getElementById('chip-function').click()")
    equal(page.state()["stalls"], len(reports), "the stalls without the frame")


def check_address(page, driver, address, reports, function, wanted):
    """The address shows the same view again; Back shows the view before."""
    page = Page(driver, address)
    equal(page.hash(), "", "the address at first")
    first = page.state()
    search(page, function)
    searched = page.hash()
    expect("q=" in searched, f"the address after a search is {searched}")
    page.press(Keys.ENTER)
    page.script("document.activeElement.blur()")
    page.press("b", "r", Keys.END, Keys.ENTER)
    view, link = page.state(), page.hash()
    expect(link != searched, "the address does not change")
    shown = page.text("detail")
    equal(view["stalls"], wanted, "the stalls of the view")

    again = Page(driver, address + link)
    equal(again.state(), view, "the view of the link")
    equal(again.text("detail"), shown, "the stall of the link")
    equal(again.script("return document.getElementById('search').value"), function, "the search of the link")
    equal(again.hash(), link, "the address of the link")

    page = Page(driver, address)
    search(page, function[:-1])
    page.press(function[-1])
    page.script("document.activeElement.blur()")
    page.press("b")
    page.script("history.back()")
    page.wait("!document.getElementById('bottom-up').checked", "the first Back")
    equal(page.state()["stalls"], wanted, "the stalls after the first Back")
    page.script("history.back()")
    # All letters of the search are one step.
    page.wait("document.getElementById('search').value === ''", "the second Back")
    equal(page.state(), first, "the view after the second Back")

    hostile = Page(driver, address + "#" + HOSTILE)
    equal(hostile.state()["stalls"], 0, "the stalls that a made-up search leaves")
    hostile.press(Keys.ESCAPE)
    hostile.script("document.activeElement.blur()")
    # A cause that no report has is left out of the address.
    of_cause = count(reports, lambda report: report["cause"]["kind"] == "cpu") or len(reports)
    equal(hostile.state()["stalls"], of_cause, "the stalls of a made-up address")
    hostile.press(Keys.ESCAPE)
    equal(hostile.state()["stalls"], len(reports), "the stalls after a made-up address")


def check_brush(page, driver, address, reports):
    """A brush on the timeline leaves its stalls and zooms in; Esc undoes the zoom, the range, the rest."""
    page = Page(driver, address)
    canvas = driver.find_element("id", "timeline")
    page.script("arguments[0].scrollIntoView()", canvas)
    width = canvas.rect["width"]
    move = ActionChains(driver).move_to_element_with_offset(canvas, int(-width * 0.1), 0).click_and_hold()
    move.move_by_offset(int(width * 0.2), 0).release().perform()
    chosen = page.script("return stallwatch.filters.range")
    expect(chosen is not None, "a brush selects nothing")
    first = min(begin(report) for report in reports)
    wanted = count(
        reports,
        lambda report: begin(report) - first <= chosen[1]
        and begin(report) - first + round(report["durationMilliseconds"] * 1000) >= chosen[0],
    )
    equal(page.state()["stalls"], wanted, "the stalls of the brush")
    expect(page.is_shown("all-times") and page.is_shown("chip-time"), "nothing says that a range is shown")
    expect("time=" in page.hash(), "the address has no range")
    chip = page.text("chip-time")
    days = page.script("return stallwatch.filters.range.map((time) => timeText(time).slice(0, 10))")
    expect(all(day in chip for day in days), f"the times from {days[0]} to {days[1]} are shown as {chip!r}")
    middle = page.script("return stallwatch.timeline.view")
    equal([round(time) for time in middle], [round(time) for time in chosen], "the times of the zoomed timeline")
    again = Page(driver, address + page.hash())
    equal(again.state()["stalls"], wanted, "the stalls of the brush's link")

    if wanted > 0:
        again.press("f", Keys.ARROW_DOWN, Keys.ENTER)
        inner = again.state()["zoom"]
        again.press("/")
        again.press(*"a")
        again.press(Keys.ESCAPE)
        equal(again.script("return document.getElementById('search').value"), "", "the search after Esc")
        again.press("f", Keys.ARROW_DOWN, Keys.ENTER)
        equal(again.state()["zoom"], inner, "the zoom")
        again.press(Keys.ESCAPE)
        expect(again.state()["zoom"] != inner, "Esc does not zoom out")
        expect(again.script("return stallwatch.filters.range !== null"), "Esc undoes two steps")
    again.press(Keys.ESCAPE)
    equal(again.state()["stalls"], len(reports), "the stalls after Esc")
    expect(not again.is_shown("all-times"), "a range is shown after Esc")


def check_group(page, driver, address, reports, top):
    """A chosen group has a view with the times, durations, versions and hosts of all its stalls, which a link shows again."""
    page = Page(driver, address)
    expect(not page.is_shown("group") and not page.is_shown("views"), "a group is shown before one is chosen")
    page.press("g", Keys.HOME, Keys.ENTER)
    expect(page.is_shown("group") and not page.is_shown("detail"), "the chosen group is not shown")
    largest = max(top["groups"], key=lambda group: group["totalMilliseconds"])
    equal(page.state()["total"], microseconds(largest, "total"), "the flame graph's total for the largest group")
    fingerprint = page.script("return text(stallwatch.filters.group)")
    own = [report for report in reports if report["fingerprint"] == fingerprint]
    longest = max(own, key=lambda report: report["durationMilliseconds"])
    for words in [longest["cause"]["summary"], "Try: "][: 1 + (page.script("return data.stalls.advice[chosenStall]") is not None)]:
        expect(words in page.text("group"), f"the group does not begin with {words!r}: {page.text('group')[:200]!r}")
    wanted = sum(1 + report["repeats"] for report in own)
    for chart in page.script(
        """return [...document.querySelectorAll("#group .bars")].map((chart) => [...chart.children].map((bar) => bar.title))"""
    ):
        equal(sum(int(title.rsplit(": ", 1)[1].split(" ")[0].replace(",", "")) for title in chart), wanted, "the bars' stalls")
    tables = page.script(
        """return [...document.querySelectorAll("#group table")].map((table) => Object.fromEntries(
        [...table.querySelectorAll("tbody tr")].map((row) => [row.cells[0].textContent, row.cells[1].textContent])))"""
    )
    versions, hosts = {}, {}
    for report in own:
        for counts, name in [(versions, report["metadata"]["version"]), (hosts, report["process"]["hostname"])]:
            counts[name] = counts.get(name, 0) + 1 + report["repeats"]
    equal(tables, [{name: f"{count:,}" for name, count in counts.items()} for counts in [versions, hosts]], "the tables")
    shown = page.text("group")
    again = Page(driver, address + page.hash())
    equal(again.text("group"), shown, "the group of the link")
    expect(again.is_shown("group"), "the link does not show the group")
    again.script("document.getElementById('tab-detail').click()")
    expect(again.is_shown("detail") and not again.is_shown("group"), "the group hides the stall")
    again.script("document.activeElement.blur()")
    again.press("r", Keys.END, Keys.ENTER, Keys.ESCAPE)
    equal(again.state()["stalls"], len(reports), "the stalls without the group")
    expect(again.is_shown("detail") and not again.is_shown("views"), "the group is still shown")


def check_rows(page, reports):
    """A group's row has its culprit, place, caller, stalls over time, number, time and end; the culprit has the most room."""
    page.resize(1280)
    group = page.script(
        "const {fingerprint, count, total} = stallwatch.groups().sort((a, b) => b.total - a.total)[0]; return {fingerprint, count, total}")
    own = [report for report in reports if report["fingerprint"] == group["fingerprint"]]
    cells = page.script(
        """return [...document.querySelector("#groups .row").children].map((cell) => ({
          text: cell.textContent, width: cell.clientWidth, bars: cell.querySelectorAll(".bars span").length}))"""
    )
    culprit, _, *numbers = cells
    # The stalls of a group may have several lines, of which the row has one.
    places = {f"{pathlib.Path(report['culprit']['file']).name}:{report['culprit']['line']}": report for report in own}
    place = next((place for place in places if place in culprit["text"]), "one of the places")
    shown = places.get(place, own[0])
    own_culprit = shown["culprit"]
    stack = [shown["frames"][index] for index in shown["stacks"][0]]
    names = [frame["function"] for frame in stack if frame["isInApp"]]
    caller = names[names.index(own_culprit["function"]) + 1]
    for words in [own_culprit["function"], place, f"called by {caller}", shown["cause"]["kind"]]:
        expect(words in culprit["text"], f"the row {culprit['text']!r} has no {words!r}")
    # A list over the whole width has the quantiles, too; in a narrow one the harm, where it is known, replaces the last time.
    is_wide, has_harm = len(reports) <= FEW, any("victims" in report for report in reports)
    has_last = is_wide or not has_harm
    equal([cell["bars"] for cell in cells], [0, 24] + [0] * (2 + 3 * is_wide + has_harm + has_last), "the bars of a row's cells")
    last = max(report["startedAt"] for report in own)
    total = page.script("return duration(arguments[0])", group["total"])
    figures = [f'{group["count"]:,}', total, last[5:16].replace("T", " ")][: 2 + has_last]
    equal([cell["text"] for cell in numbers[-len(figures):]], figures, "a row's figures")
    expect(culprit["width"] > 2 * max(cell["width"] for cell in cells[1:]), f"the widths of a row's cells: {cells}")


def check_harm(page, top):
    """A click on the harm ranks the groups by it, as `top` counts it; what is not known comes before where nothing waited."""
    harms = {group["fingerprint"]: group.get("harmMilliseconds") for group in top["groups"]}
    before, after = page.script(
        """const order = () => groupList.items.map((group) => group.fingerprint), before = order();
        const head = [...document.querySelectorAll("#groups .head button")].find((each) => each.textContent === "harm");
        if (head) head.click();
        return [before, head ? order() : null];"""
    )
    equal(after is not None, any(harm is not None for harm in harms.values()), "whether groups can be ranked by harm")
    if after is None:
        return
    ranks = [0.0005 if harms[fingerprint] is None else harms[fingerprint] for fingerprint in after]
    equal(ranks, sorted(ranks, reverse=True), "the harm of the groups, in their order")
    if len(after) > FEW:
        expect(before != after, "the order by harm is that by time")
        expect(harms[after[0]] and None in harms.values() and 0 in harms.values(), f"not every kind of harm is there: {ranks}")
        cells = page.script("return [...document.querySelector('#groups .row').children].map((cell) => cell.textContent)")
        shown = page.script("return duration(arguments[0])", round(harms[after[0]] * 1000))
        expect(shown in cells, f"the first row {cells} has no {shown}")


def check_totals(page):
    """The four totals are buttons that show the reports, the groups and the longest stall."""
    for name, tab in [("stalls", "tab-stalls"), ("groups", "tab-groups"), ("stalls", "tab-stalls"), ("stalled", "tab-groups")]:
        page.script("document.querySelector('#total-' + arguments[0] + ' button').click()", name)
        selected = page.script("return document.querySelector('#lists [role=tab][aria-selected=true]').id")
        equal(selected, tab, f"what a click on {name} shows")
    page.press("r", Keys.END, Keys.ENTER)
    page.script("document.querySelector('#total-longest button').click()")
    longest = page.script("return sentence(stallwatch.data.stalls.duration.indexOf(Math.max(...stallwatch.data.stalls.duration)))")
    equal(page.script("return document.querySelector('#detail h2').textContent"), longest, "what a click on longest shows")


def check_colours(page, scheme):
    """No two meanings have colours that look alike, and what a lock blocked has the colour of locks."""
    colours = page.script(
        """const style = getComputedStyle(document.body), own = (name) => style.getPropertyValue(name).trim();
        return {...causeColours, chosen: own("--accent"), app: own("--app")}"""
    )
    values = {name: [int(colour[at : at + 2], 16) for at in (1, 3, 5)] for name, colour in colours.items()}
    for one in values:
        for other in values:
            distance = sum((a - b) ** 2 for a, b in zip(values[one], values[other])) ** 0.5
            expect(one == other or distance > 70, f"{scheme}: {one} and {other} look alike: {colours[one]}, {colours[other]}")
    for cause, blocked in [("lock", "lock"), ("io", "io"), ("cpu", "unknown"), ("throttled", "unknown")]:
        equal(page.script("return blockedColour(arguments[0])", cause), colours[blocked], f"the colour of blocked time with {cause}")


def check_targets(page, what):
    """What can be pressed has 24 pixels, or nothing else to press is as near (WCAG 2.2, 2.5.8)."""
    faults = page.script(
        """const seen = [...document.querySelectorAll("button, a[href], input, select, summary")].map((each) => {
          const target = each.closest("label") || each, box = target.getBoundingClientRect();
          const x = box.left + box.width / 2, y = box.top + box.height / 2, hit = document.elementFromPoint(x, y);
          return {each, box, x, y, isSmall: Math.min(box.width, box.height) < 24, isHit: target.contains(hit)};
        }).filter(({isHit}) => isHit);
        const distance = (one, other) => other.isSmall ? Math.hypot(one.x - other.x, one.y - other.y) - 12
          : Math.hypot(Math.max(other.box.left - one.x, one.x - other.box.right, 0), Math.max(other.box.top - one.y, one.y - other.box.bottom, 0));
        return seen.filter((one) => one.isSmall && seen.some((other) => other !== one && distance(one, other) < 12))
          .map(({each, box}) => each.outerHTML.slice(0, 80) + " " + box.width.toFixed(1) + " x " + box.height.toFixed(1));"""
    )
    equal(faults, [], f"the targets that are too small at {what}")


def check_without_scripts(driver, address, top):
    """A browser that runs no scripts shows the groups with their sentences, those that cost most first, and nothing else."""
    texts = texts_without_scripts(driver, address)
    expect(texts[:1] == ["Stalls"], f"the page without scripts begins with {texts[:3]}")
    largest = max(top["groups"], key=lambda group: group["totalMilliseconds"])
    titles = [text for text in texts if text.endswith(")") and " in " in text and not text.startswith("Try")]
    expect(len(titles) >= min(top["groupCount"], 100) / 2, f"{len(titles)} of {top['groupCount']} groups are listed")
    expect(largest["culprit"]["function"] in titles[0], f"the first of the list is {titles[0]!r}")
    expect("Keyboard" not in texts, "the controls are shown, which do nothing")


def check_print(page, driver, view):
    """On paper, where nothing scrolls, the stall or the group and the flame graph are whole."""
    page.resize(1280)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    page.draw()
    cut = page.script(
        """return [arguments[0], "flame-scroll"].map((id) => document.getElementById(id))
        .filter((box) => box.scrollHeight > box.clientHeight + 1).map((box) => box.id)""", view
    )
    rows = page.script("return Math.max(...[...document.querySelectorAll('.rows')].map((rows) => rows.clientHeight))")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    equal(cut, [], "what is cut off on paper")
    expect(rows <= 440, f"a list has {rows} pixels on paper")


def check_layout(page, driver, reports, axe, view):
    """At each width, light and dark, the page fits, and axe finds no fault, nor a target of less than 24 pixels."""
    source = pathlib.Path(axe).read_text()
    faults = []
    for width in WIDTHS:
        page.resize(width)
        for scheme in ["light", "dark"]:
            driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            )
            page.draw()
            found = page.script("return [innerWidth, document.documentElement.scrollWidth]")
            equal(found, [width, width], "the widths of the window and of the page")
            check_colours(page, scheme)
            background = page.script("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
            equal(sum(background) / 3 < 64, scheme == "dark", f"whether {scheme} is dark")
            tops = page.script("return [...document.querySelectorAll('#causes button')].map((each) => each.getBoundingClientRect().top)")
            expect(len(tops) > 1 and len(set(tops)) == 1, f"the causes are not in one line of {width}: {tops}")
            # A stall first, then when it was, then the others; elsewhere all on the first screen, below the timeline.
            tops = page.script(
                "return ['chosen', 'timeline', 'lists'].map((id) => document.getElementById(id).getBoundingClientRect().top + scrollY)"
            )
            expect(tops == sorted(tops) if width <= 600 else tops[1] < min(tops[0], tops[2]), f"the order of {width}: {tops}")
            if len(reports) <= FEW and width > 1000:
                boxes = page.script(
                    """return ["lists", "detail", "flame"].map((id) => document.getElementById(id).getBoundingClientRect())
                    .map((box) => [box.top + scrollY, box.bottom + scrollY, box.width])"""
                )
                (_, list_end, _), (top, bottom, wide), (flame_top, _, _) = boxes
                expect(list_end <= top and wide > 0.9 * width and bottom > 900 - 40, f"the stall at {width} is at {boxes}")
                expect(flame_top >= 900, f"the flame graph is not below the first screen: {boxes}")
            axis = page.script("return stallwatch.timeline.axis")
            expect(len(axis) >= 2, f"the axis of {width} has {axis}")
            for id in ["search", "timeline", "groups", view, "flame"]:
                box = page.script(
                    "const box = document.getElementById(arguments[0]).getBoundingClientRect(); return [box.left, box.right]", id
                )
                expect(0 <= box[0] < box[1] <= width, f"{id} is at {box} of {width}")
            # What is cut off in the list can be read nowhere else on the row.
            culprit = page.script("const cell = document.querySelector('#groups .row .name'); return cell.clientWidth")
            expect(culprit >= 80, f"the culprit has {culprit} pixels of {width}")
            if scheme == "light":
                check_targets(page, width)
            # What axe finds depends on the width or on the colours: each width in one of them, and in the other for the other view.
            if (WIDTHS.index(width) + (scheme == "dark") + (view == "group")) % 2:
                continue
            driver.execute_script(source)
            result = driver.execute_async_script("axe.run().then(arguments[0], (error) => arguments[0]({error: String(error)}))")
            expect("violations" in result, f"axe failed: {result}")
            expect(len(result["passes"]) > 10, "axe checked next to nothing")
            for fault in result["violations"]:
                faults.append(f"{width} {scheme}: {fault['id']}: {[node['html'][:120] for node in fault['nodes'][:3]]}")
    equal(faults, [], "what axe finds")


def check(driver, path, ndjson, top, axe):
    expect(pathlib.Path(axe).exists(), f"{axe} is missing: run `make test`, which installs it")
    reports = [json.loads(line) for line in pathlib.Path(ndjson).read_text().splitlines()]
    top = json.loads(pathlib.Path(top).read_bytes())
    path = pathlib.Path(path).resolve()
    address = path.as_uri()
    function = next(name for name in sorted(functions(reports[0]) - {None}) if any(name not in functions(each) for each in reports))
    page = Page(driver, address)
    loaded = page.script('return performance.getEntriesByType("navigation")[0].loadEventEnd')
    check_groups(page, top)
    wanted = check_filters(page, reports, function)
    check_frame(page, reports, function, wanted)
    check_keys(Page(driver, address))
    check_address(page, driver, address, reports, function, wanted)
    check_brush(page, driver, address, reports)
    check_group(page, driver, address, reports, top)
    check_totals(Page(driver, address))
    check_rows(Page(driver, address), reports)
    check_harm(Page(driver, address), top)
    check_silence(driver, address)
    check_without_scripts(driver, address, top)
    page, view = Page(driver, address), "detail"
    if len(reports) > MANY:
        page.press("g", Keys.HOME, Keys.ENTER)
        view = "group"
    check_print(page, driver, view)
    check_layout(page, driver, reports, axe, view)
    return f"{len(reports)} reports, {path.stat().st_size} bytes, loaded in {loaded:.0f} ms"


if __name__ == "__main__":
    sys.exit(run(check, __doc__, sys.argv[1:]))
