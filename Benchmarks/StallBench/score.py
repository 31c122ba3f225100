"""Scores what tools have reported against the truth. Pure functions: times and reports in, tables out."""

import math
import random
import statistics

# A report may begin a little before the case does: with the turn, or by the clock of another process.
SLACK = 0.03
Z = 1.96
NATIVE = ("glib-a", "glib-b", "thread", "cf", "swift")
# Pairs of samples of the bootstrap.
ROUNDS = 400


def cases_of(lines):
    """The stalls and healthy cases in the lines of a driver. A case without an end ended with its process: it is left
    out."""
    cases, current = [], None
    for line in lines:
        if "case" in line:
            current = {**line, "owner": None}
        elif current and "owner" in line:
            current.update(owner=line["owner"], **{"owner name": line["owner name"]})
        elif current and "end" in line:
            cases.append({**current, **line})
            current = None
    return cases


def overlaps(incident, case):
    """Whether a report is about the time of a case."""
    end = incident["began"] + incident["duration"] if incident["duration"] else incident["reported"]
    return incident["began"] >= case["start"] - SLACK - 0.1 * (case["end"] - case["start"]) and \
        incident["began"] < case["end"] and end > case["start"]


def judge(row, threshold):
    """Judges a tool's row: one verdict per stall, one per healthy case, and how many reports are about nothing."""
    stalls, healthy, used = [], [], set()
    for case in row["truth"]:
        about = [index for index, one in enumerate(row["incidents"]) if overlaps(one, case)]
        used.update(about)
        if case["healthy"]:
            # A healthy case that the machine has stretched over the threshold was a stall, and is not counted.
            if case["longest"] <= threshold:
                healthy.append({"case": case["case"], "alarm": bool(about)})
            continue
        first = row["incidents"][about[0]] if about else {}
        length = case["end"] - case["start"]
        stalls.append({
            "case": case["case"], "stopped": case["stopped"] if case["cause"] == "cpu" and case["stopped"] >= 0 else None,
            "early": case["early"], "detected": bool(about),
            "in time": bool(about) and first["reported"] <= case["end"],
            "function": bool(about) and plain(first["function"]) == case["function"],
            "cause": bool(about) and first["cause"] == case["cause"],
            "owner": None if not case["owner"] else
            bool(about) and first["owner"] in (case["owner"], case["owner name"]),
            "error": abs(first["duration"] - length) if about and first["duration"] else None,
            "delay": first["reported"] - case["start"] if about else None,
        })
    return stalls, healthy, len(row["incidents"]) - len(used)


def plain(function):
    """A function's name without module, type and parameters."""
    return (function or "").split("(")[0].split(".")[-1]


def wilson(hits, count):
    """The 95 % interval of a proportion."""
    if not count:
        return 0.0, 1.0
    share, spread = hits / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / count + spread / count / 4) / (1 + spread)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def spread_of(rounds):
    """How far a second run of as many rounds may be from the mean of these, by what the rounds differ (Student's t, 95 %); 0
    for one round."""
    if len(rounds) < 2:
        return 0.0
    t = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}.get(len(rounds), 2.5)
    return t * statistics.stdev(rounds) * math.sqrt(2 / len(rounds))


def median_of(rounds, seed=1):
    """The median of the values of all rounds, and the interval of a second run's; None without values."""
    values = [value for one in rounds for value in one]
    if not values:
        return None
    draw, middle = random.Random(seed), statistics.median(values)
    medians = [statistics.median(draw.choices(values, k=len(values))) for _ in range(2 * ROUNDS)]
    # Two runs differ by what two samples do.
    differences = sorted(one - other for one, other in zip(medians[::2], medians[1::2]))
    spread = spread_of([statistics.median(one) for one in rounds if one])
    low, high = differences[ROUNDS * 25 // 1000], differences[-1 - ROUNDS * 25 // 1000]
    # What it is used for is never negative.
    return middle, max(middle + min(low, -spread), 0), middle + max(high, spread)


def mean_of_rounds(rounds):
    """The mean of the rounds' values, and the interval of a second run's; None without values."""
    if not rounds:
        return None
    mean, spread = statistics.fmean(rounds), spread_of(rounds)
    return mean, mean - spread, mean + spread


def share_of(rounds):
    """The share of what is true in all rounds, in percent, and the interval of a second run's; None without values."""
    judged = [value for one in rounds for value in one]
    if not judged:
        return None
    # Two runs differ by what two samples do, which have twice the variance of one: as if there were half as many values.
    low, high = wilson(sum(judged) / 2, len(judged) / 2)
    share, spread = sum(judged) / len(judged), spread_of([sum(one) / len(one) for one in rounds if one])
    return 100 * share, 100 * max(min(low, share - spread), 0), 100 * min(max(high, share + spread), 1)


SHARES = (("detected", "found"), ("in time", "in time"), ("function", "function"), ("cause", "cause"),
          ("owner", "owner"))
NUMBERS = (("alarms", "false alarms"), ("delay", "reported after, ms"), ("error", "duration off by, ms"),
           ("early", "early returns"), ("stopped", "stood still, ms"), ("cpu", "CPU, %"))
# For these a greater number is better.
GREATER = {"detected", "in time", "function", "cause", "owner"}


def summarize(results, tool, sets):
    """A tool's numbers over some sets: {metric: (value, low, high)}, None where there is none, or the reason for no
    row."""
    rows = [row for row in results["rows"] if row["tool"] == tool and row["set"] in sets]
    good = [row for row in rows if row["status"] == "ok"]
    if not good:
        return next((f"{row['status']}: {row['reason']}" for row in rows), "not run")
    # Per round: the verdicts on its stalls and on its healthy cases.
    stalls, healthy, stray = {}, {}, 0
    for row in good:
        more = judge(row, results["threshold"])
        stalls.setdefault(row["run"], []).extend(more[0])
        healthy.setdefault(row["run"], []).extend(more[1])
        stray += more[2]
    alone = [row for row in results["rows"] if row["tool"] == "none" and row["status"] == "ok" and row["set"] in
             {one["set"] for one in good}]

    def values(pick, of=stalls):
        """What is picked from each verdict that has it, per round."""
        return [[value for one in of[run] if (value := pick(one)) is not None] for run in sorted(of)]

    summary = {"stalls": sum(map(len, stalls.values())), "healthy": sum(map(len, healthy.values())), "stray": stray}
    for metric, _ in SHARES:
        summary[metric] = share_of(values(lambda one: one[metric]))
    summary["alarms"] = share_of(values(lambda one: one["alarm"], healthy))
    for metric in ("delay", "error", "stopped"):
        summary[metric] = median_of(values(lambda one: one[metric] * 1000 if one[metric] is not None else None))
    summary["early"] = share_of(values(lambda one: one["early"] > 0))
    summary["cpu"] = mean_of_rounds([cpu_share(good, alone, run) for run in sorted(stalls)])
    failed = {f"{row['set']} {row['status']}: {row['reason']}" for row in rows if row["status"] in ("hung", "failed")}
    summary["notes"] = sorted({row["reason"] for row in rows if row["status"] == "missing"} | failed)
    return summary


def cpu_share(rows, alone, run):
    """The CPU time of one run in percent of a processor, less that of the program alone."""
    rows = [row for row in rows if row["run"] == run]
    base = {}
    for row in alone:
        base.setdefault(row["set"], []).append(row["cpu"])
    return 100 * sum(row["cpu"] - statistics.median(base.get(row["set"], [0])) for row in rows) / \
        sum(row["wall"] for row in rows)


# The digits that the tables show behind the point.
DIGITS = {"cpu": 1, "stopped": 2, "error": 1, "early": 1}


def printed(metric, value):
    """A number and its interval, as the tables show them."""
    # Without a minus before zero.
    return [round(number, DIGITS.get(metric, 0)) + 0.0 for number in value]


def cell(metric, value):
    """A number with its interval, as in "97 (95 to 99)"."""
    if value is None:
        return "–"
    shown = [f"{number:.{DIGITS.get(metric, 0)}f}" for number in printed(metric, value)]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def table(results, sets, tools):
    """One table: a row per tool that applies."""
    columns = ["tool", *(title + ", %" for _, title in SHARES), "false alarms, %", *(title for _, title in NUMBERS[1:])]
    columns[columns.index("early returns")] = "early returns, %"
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    for tool in tools:
        summary = summarize(results, tool, sets)
        if isinstance(summary, str):
            lines.append(f"| {title_of(tool)} | {summary} |" + " |" * (len(columns) - 2))
            continue
        cells = [cell(metric, summary[metric]) for metric, _ in SHARES + NUMBERS]
        lines.append(f"| {title_of(tool)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def title_of(tool):
    return {"none": "no tool", "stallwatch": "**StallWatch**", "eu_stack": "eu-stack", "py_spy": "py-spy",
            "seastar": "Seastar's method", "glommio": "glommio's method", "watchdog": "watchdog thread",
            "python_faulthandler": "faulthandler"}.get(tool, tool)


def losses(results, sets, tools, ours="stallwatch"):
    """Where another tool does better than ours, beyond both intervals first; and the cases that ours gets wrong."""
    own = summarize(results, ours, sets)
    if isinstance(own, str):
        return [f"StallWatch has no row: {own}."]
    lines = []
    others = {tool: summarize(results, tool, sets) for tool in tools if tool not in (ours, "none")}
    for metric, title in SHARES + NUMBERS:
        better = []
        for tool, other in others.items():
            if isinstance(other, str) or not other[metric] or not own[metric]:
                continue
            sign = 1 if metric in GREATER else -1
            if sign * (other[metric][0] - own[metric][0]) > 0.05:
                clear = other[metric][1] > own[metric][2] if sign > 0 else other[metric][2] < own[metric][1]
                unit = "" if "ms" in title else " %"
                name = title_of(tool)
                better.append(f"{name} {other[metric][0]:.1f}{unit}" + ("" if clear else " (the intervals overlap)"))
        if better:
            unit = "" if "ms" in title else " %"
            lines.append(f"{title.removesuffix(', %')}: StallWatch {own[metric][0]:.1f}{unit}; {', '.join(better)}.")
    wrong = {}
    for row in results["rows"]:
        if row["tool"] != ours or row["status"] != "ok" or row["set"] not in sets:
            continue
        stalls, healthy, _ = judge(row, results["threshold"])
        for one in stalls:
            for metric, title in SHARES:
                if one[metric] is False and (metric in ("detected", "in time") or one["detected"]):
                    wrong.setdefault((title, one["case"]), set()).add(row["run"])
        for one in healthy:
            if one["alarm"]:
                wrong.setdefault(("false alarm", one["case"]), set()).add(row["run"])
    for title in [title for _, title in SHARES] + ["false alarm"]:
        names = [f"{case} ({len(runs)} of {results['runs']})" if len(runs) != results["runs"] else case
                 for (kind, case), runs in sorted(wrong.items()) if kind == title]
        if names:
            what = {"found": "Not found", "in time": "Not in time", "false alarm": "False alarms in"}.get(
                title, f"Wrong {title} in")
            lines.append(f"{what}: {', '.join(names)}.")
    return lines


def page(results):
    """The losses, the tables and the command lines, as Markdown."""
    native = list(NATIVE)
    tools = list(results["commands"])
    shown = [tool for tool in tools if tool not in ("py_spy", "python_faulthandler")]
    rows = [row for row in results["rows"] if row["status"] == "ok"]
    good = {tool: summary for tool in tools
            if not isinstance(summary := summarize(results, tool, native), str)}
    some = next(iter(good.values()), {"stalls": 0, "healthy": 0})
    load = statistics.median([row["load"] for row in rows]) if rows else 0
    machine = results["machine"]
    text = [f"Run of {results['date']}: Linux {machine['kernel']}, {machine['processors']} processors, "
            f"seed {results['seed']}, {results['runs']} rounds, threshold {results['threshold'] * 1000:.0f} ms; "
            f"median load average {load:.1f}. Each tool had {some['stalls']} stalls and {some['healthy']} healthy "
            "cases in all rounds.",
            "", "### Our losses", ""]
    text += [f"- {line[0].upper()}{line[1:]}" for line in losses(results, native, shown)]
    elsewhere = summarize(results, "stallwatch", ["python"])
    if isinstance(elsewhere, str) and "stallwatch" in tools:
        text.append(f"- Python: {elsewhere}.")
    text += ["", "### C and Swift", "", table(results, native, shown)]
    if "python" in {row["set"] for row in results["rows"]}:
        text += ["", "### Python", "",
                 table(results, ["python"], [tool for tool in tools])]
    notes = []
    for tool, summary in good.items():
        if summary["notes"] or summary["stray"]:
            notes.append(f"- {title_of(tool)}: " + "; ".join(
                [*summary["notes"], *([f"{summary['stray']} reports about no case"] if summary["stray"] else [])]))
    if notes:
        text += ["", "Notes:", "", *notes]
    text += ["", "In parentheses is the interval in which a second run of as many rounds is expected 19 times in 20: what two samples "
             "of this size differ by, or what the rounds of this run differ by, whichever is more."]
    text += ["", "### Command lines", ""]
    text += [f"- {title_of(tool)}: `{command}`" for tool, command in results["commands"].items()]
    return "\n".join(text) + "\n"


def comparison(one, other):
    """How many numbers of another run are within the intervals of this one, and which are not."""
    inside, outside = 0, []
    for sets in (NATIVE, ("python",)):
        for tool in one["commands"]:
            first, second = summarize(one, tool, sets), summarize(other, tool, sets)
            if isinstance(first, str) or isinstance(second, str):
                continue
            for metric, title in SHARES + NUMBERS:
                # Of no tool nothing is measured but the program itself.
                if first[metric] is None or second[metric] is None or tool == "none":
                    continue
                value, (_, low, high) = printed(metric, second[metric])[0], printed(metric, first[metric])
                if low <= value <= high:
                    inside += 1
                else:
                    outside.append(f"{title_of(tool)}, {title}: {value}, not in {low} to {high}")
    absent = [title_of(tool) for tool in one["commands"]
              if all(isinstance(summarize(other, tool, sets), str) for sets in (NATIVE, ("python",)))]
    rounds = "1 round" if other["runs"] == 1 else f"{other['runs']} rounds"
    without = f", without {', '.join(absent)}" if absent else ""
    lines = [f"A second run ({rounds}, seed {other['seed']}{without}): {inside} of {inside + len(outside)} numbers are within "
             "the intervals above" + (". These are not:" if outside else ".")]
    return "\n".join(lines + ([""] if outside else []) + [f"- {line}" for line in outside]) + "\n"


def found_all(results, tool):
    """Whether a tool ran everywhere and found every stall."""
    rows = [row for row in results["rows"] if row["tool"] == tool]
    verdicts = [one for row in rows for one in judge(row, results["threshold"])[0]]
    return bool(verdicts) and all(row["status"] == "ok" for row in rows) and all(one["detected"] for one in verdicts)
