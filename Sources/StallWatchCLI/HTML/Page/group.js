// One group: its stalls over time, their durations, and the versions and hosts that have them.

// The times and durations of a group's stalls: [start, microseconds, count]. The repeats of a report, of which only the sum
// is known, stand at its time with their mean.
const sizesOf = (list) => list.flatMap((stall) => {
  const { start, duration, total, repeats } = stalls;
  const own = [start[stall], duration[stall], 1];
  const rest = Math.max(total[stall] - duration[stall], 0);
  return repeats[stall] > 0 ? [own, [start[stall], rest / repeats[stall], repeats[stall]]] : [own];
});

const lastStart = stalls.start.reduce((a, b) => Math.max(a, b), 0);

function histogram(pairs, count, first, last) {
  const bins = new Array(count).fill(0);
  for (const [value, weight] of pairs) {
    const place = last > first ? Math.floor((value - first) / (last - first) * count) : 0;
    bins[Math.min(Math.max(place, 0), count - 1)] += weight;
  }
  return bins;
}

function barsOf(title, bins, words) {
  const most = Math.max(...bins);
  const bars = bins.map((count, index) => element("span", {
    title: words(index) + ": " + counted(count, "stall", "stalls"),
    style: "height: " + (count === 0 ? 0 : Math.max(count / most * 100, 4)) + "%",
  }));
  const label = title + ": at most " + number(most) + ", " + words(bins.indexOf(most));
  return element("div", { class: "bars", role: "img", "aria-label": label }, ...bars);
}

const barChart = (title, bins, ends, words) =>
  [element("h3", {}, title), barsOf(title, bins, words), element("div", { class: "axis" }, ...ends.map((end) => element("span", {}, end)))];

const overTime = (list, count) => histogram(sizesOf(list).map(([start, , weight]) => [start, weight]), count, 0, lastStart);
const partOfTime = (index, count) => timeText(lastStart * index / count).slice(0, 19);
const partWords = (count) => (index) => partOfTime(index, count) + " to " + partOfTime(index + 1, count).slice(11);

const sparkline = (group) => barsOf("Over time", overTime(group.stalls, 24), partWords(24));

// The app's function that called a stall's culprit, by the stack with the most time; null if it is not known.
function callerOf(stall) {
  const isCulprit = (name) => data.functions.name[name] === stalls.culprit[stall];
  for (const [node] of stacksByTime(stall)) {
    const names = framesOf(node).map((frame) => data.frames.function[frame]);
    const place = names.findIndex(isCulprit);
    if (place < 0) continue;
    const isCaller = (name) => data.functions.isInApp[name] && !data.functions.isRuntimeFrame[name] && !isCulprit(name);
    const caller = names.slice(place + 1).find(isCaller);
    return caller === undefined ? null : text(data.functions.name[caller]);
  }
  return null;
}

function groupWords(group) {
  const caller = callerOf(group.longest);
  const loop = data.loops.some((each) => each.label !== group.loop) && "on " + group.loop + (group.loops > 1 ? " +" + (group.loops - 1) : "");
  return [!isComparison && group.change, fileName(group.place || ""), caller && "called by " + caller, loop].filter(Boolean);
}

const groupTitle = (group) => element(
  "span", { class: "group" }, element("b", {}, group.culprit || "no culprit"),
  element("span", { class: "below" }, causeLabel(group.cause), groupWords(group).map((words) => " · " + words).join(""))
);

// Equal parts of the logarithm: durations differ by factors.
function durations(sizes) {
  const logs = sizes.map(([, microseconds, weight]) => [Math.log(Math.max(microseconds, 1)), weight]);
  const [first, last] = logs.reduce(([least, most], [log]) => [Math.min(least, log), Math.max(most, log)], [Infinity, -Infinity]);
  const [count, end] = [24, (index) => duration(Math.exp(first + (last - first) * index / 24))];
  return barChart("Durations", histogram(logs, count, first, last), [end(0), end(count)], (index) => end(index) + " to " + end(index + 1));
}

function breakdown(title, list, valueOf) {
  const rows = new Map();
  for (const stall of list) {
    const value = valueOf(stall);
    const row = rows.get(value) || { value, count: 0, total: 0, last: 0 };
    row.count += 1 + stalls.repeats[stall];
    row.total += stalls.total[stall];
    row.last = Math.max(row.last, stalls.start[stall]);
    rows.set(value, row);
  }
  const sorted = [...rows.values()].sort((a, b) => b.total - a.total);
  const head = element("tr", {}, ...[title, "stalls", "total", "last seen"].map((name) => element("th", { scope: "col" }, name)));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...sorted.map(({ value, count, total, last }) => {
    const row = element("tr", {}, ...[value || "not named", number(count), duration(total), timeText(last).slice(0, 19)].map((cell) => element("td", {}, cell)));
    row.style.setProperty("--share", total / Math.max(sorted[0].total, 1) * 100 + "%");
    return row;
  })));
}

// All of a group's stalls per hour of monitored time, with the interval; null if filters leave some out.
function rateOfGroup(group) {
  const isWhole = group.stalls.length === stalls.fingerprint.reduce((count, key) => count + (key === group.key), 0);
  const isKnown = isWhole && Object.hasOwn(data.rates, group.fingerprint);
  return isKnown ? data.rates[group.fingerprint] + " over " + data.hours : null;
}

// By the names that reports and OpenTelemetry give it.
function versionOf(stall) {
  const pairs = new Map(pairsOf(stalls.metadata[stall]));
  return pairs.get("version") ?? pairs.get("service.version");
}

function showGroup(host, list) {
  if (list.length === 0) return host.replaceChildren(element("p", { class: "empty" }, "No stall matches."));
  const [group] = groupsOf(list);
  const first = list.reduce((least, stall) => Math.min(least, stalls.start[stall]), Infinity);
  const figures = [
    ["stalls", number(group.count)], ["total", duration(group.total)], ["p50", duration(group.p50)], ["p95", duration(group.p95)],
    ["max", duration(group.max)], ["per hour (95 %)", rateOfGroup(group)], ["change", group.change], ["first seen", momentText(first)], ["last seen", momentText(group.last)],
  ];
  host.replaceChildren(
    element("h2", {}, causeLabel(group.cause), " ", group.culprit || "no culprit"),
    element("p", { class: "where" }, stalls.place[group.longest] === null ? "" : wherePlace(group.longest)),
    ...explanation(group.longest),
    element("dl", { class: "figures" }, ...figures.filter(([, value]) => value).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    ...barChart("Over time", overTime(list, 40), [partOfTime(0, 40), partOfTime(40, 40) + " UTC"], partWords(40)),
    ...durations(sizesOf(list)), breakdown("version", list, versionOf), breakdown("host", list, (stall) => text(stalls.host[stall]))
  );
  host.scrollTop = 0;
}
