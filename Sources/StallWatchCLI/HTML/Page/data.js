// The stalls and stacks in the page, and functions that compute from them. Nothing here changes the page.

const data = JSON.parse(document.getElementById("data").textContent);
const stalls = data.stalls;
const stallCount = stalls.start.length;
const allStalls = Array.from({ length: stallCount }, (_, index) => index);
const text = (index) => (index === null ? null : data.strings[index]);
const linesOf = (index) => (index === null ? [] : text(index).split("\n"));

// A colour is one cause's everywhere. The app's own code is green, and what is chosen has a line in the text's colour.
const causeColours = {
  cpu: "#e8590c", lock: "#7c5cff", io: "#1c8fe3", sleep: "#64707f", syscall: "#0fa894", paging: "#d9a406",
  cpuContention: "#e0489b", throttled: "#8a5a33", deadlock: "#c8102e", continuation: "#9c27b0", unknown: "#b4bdc9",
  saturated: "#f0a98c", spinning: "#a3c644", mode: "#5ad1e6", notRun: "#2b3fd4",
};
const causeColour = (cause) => causeColours[cause] || causeColours.unknown;
const causeOf = (stall) => text(stalls.cause[stall]) || "unknown";

// Milliseconds as the tool's tables show them: 812 ms, 1.25 s, 3 min 20 s.
function duration(microseconds) {
  const milliseconds = microseconds / 1000;
  if (milliseconds > 0 && milliseconds < 1) return milliseconds.toFixed(3) + " ms";
  if (Math.round(milliseconds) < 1000) return Math.round(milliseconds) + " ms";
  if (Math.round(milliseconds) < 60000) return (milliseconds / 1000).toFixed(2) + " s";
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return Math.floor(seconds / 60) + " min " + (seconds % 60) + " s";
  return Math.floor(seconds / 3600) + " h " + Math.floor((seconds % 3600) / 60) + " min";
}
const percent = (part, whole) => (whole > 0 ? ((part / whole) * 100).toFixed(1) + " %" : "0.0 %");
const number = (value) => value.toLocaleString("en");
const counted = (count, one, many) => number(count) + " " + (count === 1 ? one : many);

const dateOf = (start) => new Date((data.begin + start) / 1000);
const timeText = (start) => dateOf(start).toISOString().replace("T", " ").replace("Z", " UTC");
// The same with the reader's own time, where that is another: 2026-11-21 08:00:00.123456 UTC (13:30:00 UTC+05:30).
function momentText(start) {
  const date = dateOf(start), minutes = -date.getTimezoneOffset();
  if (minutes === 0) return timeText(start);
  const local = new Date(date.getTime() + minutes * 60000).toISOString();
  const isSameDay = local.slice(0, 10) === date.toISOString().slice(0, 10);
  const digits = (value) => String(Math.floor(Math.abs(value))).padStart(2, "0");
  const zone = "UTC" + (minutes < 0 ? "-" : "+") + digits(minutes / 60) + ":" + digits(minutes % 60);
  return timeText(start) + " (" + local.slice(isSameDay ? 11 : 0, 19).replace("T", " ") + " " + zone + ")";
}
const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);

// A path from its package's root: Sources/Notes/Store.swift, and swift-nio/Sources/NIO/Channel.swift of a dependency; else whole.
const packagePath = (path) =>
  (/\/(?:checkouts|registry\/downloads)\/(.+)$/.exec(path) || /\/((?:Sources|Tests|Plugins|Snippets|Examples)\/.+)$/.exec(path) || [, path])[1];

// Words for a place in the source, file:line, as a link to it if it has an address.
function placeLink(place, words) {
  const [, file, line] = /^(.+):(\d+)$/s.exec(place) || [];
  const hasFile = data.link.includes("{file}");
  if (file === undefined || (hasFile && !file.startsWith("/"))) return words;
  const encoded = (path) => path.split("/").map(encodeURIComponent).join("/");
  const values = { file: encoded(file), path: encoded(packagePath(file)), line };
  return element("a", { href: data.link.replace(/\{(file|path|line)\}/g, (_, name) => values[name]) }, words);
}

// The first of the longest stalls; null without any.
const longestOf = (indices) =>
  indices.reduce((a, b) => (a === null || stalls.duration[b] > stalls.duration[a] ? b : a), null);
// As the tool counts: 18 reports of 38 stalls.
function reportsText(indices) {
  const count = indices.reduce((all, stall) => all + 1 + stalls.repeats[stall], 0);
  const all = counted(count, "stall", "stalls");
  return count === indices.length ? all : counted(indices.length, "report", "reports") + " of " + all;
}
const timeOf = (indices) => indices.reduce((all, stall) => all + stalls.total[stall], 0);

// The stall to look at first: one that lasts, that nobody saw end, or a deadlock; else the longest. null without any.
const urgency = (stall) =>
  ({ ongoing: 3, abandoned: 2 })[text(stalls.state[stall])] || (causeOf(stall) === "deadlock" ? 1 : 0);
const worstOf = (indices) => indices.reduce((worst, stall) => {
  const order = worst === null ? 1 : urgency(stall) - urgency(worst) || stalls.duration[stall] - stalls.duration[worst];
  return order > 0 ? stall : worst;
}, null);

// In a comparison, the milliseconds of stalled time per hour of a side's monitored time.
const isComparison = data.sides.length === 2;
const rate = (microseconds, side) => microseconds / 1000 / (data.sides[side].microseconds / 3.6e9);
const rateText = (rate) => duration(rate * 1000) + "/h";
const sideTimes = (indices) => [0, 1].map((side) => timeOf(indices.filter((stall) => stalls.side[stall] === side)));

// The sums of weights by key: of [key, weight].
function tally(pairs) {
  const sums = new Map();
  for (const [key, weight] of pairs) sums.set(key, (sums.get(key) || 0) + weight);
  return sums;
}

// The keys, those with the largest weights first; of equal ones the first by name, as in the tool.
const byWeight = (weights) => [...weights.keys()].sort((a, b) => weights.get(b) - weights.get(a) || (a < b ? -1 : 1));
const heaviest = (weights) => (weights.size === 0 ? null : byWeight(weights)[0]);

// The nearest-rank quantile of sorted durations.
const quantile = (sorted, fraction) =>
  sorted[Math.min(Math.max(Math.ceil(fraction * sorted.length), 1), sorted.length) - 1];

// Stalls by fingerprint, with the same figures as `stallwatch top --json`.
function groupsOf(indices) {
  const lists = new Map();
  for (const stall of indices) {
    const key = stalls.fingerprint[stall];
    if (!lists.has(key)) lists.set(key, []);
    lists.get(key).push(stall);
  }
  const weights = (list, valueOf) => tally(list.map((stall) => [valueOf(stall), stalls.total[stall]]));
  return [...lists].map(([key, list]) => {
    const durations = list.map((stall) => stalls.duration[stall]).sort((a, b) => a - b);
    const loops = weights(list, (stall) => data.loops[stalls.loop[stall]].label);
    const blamed = list.filter((stall) => stalls.culprit[stall] !== null);
    let repeats = 0, last = 0, max = 0, harm = null;
    for (const stall of list) {
      const share = stalls.duration[stall] > 0 ? stalls.total[stall] / stalls.duration[stall] : 1;
      if (stalls.harm[stall] !== null) harm = (harm || 0) + stalls.harm[stall] * share;
      max = Math.max(max, stalls.greatest[stall]);
      repeats += stalls.repeats[stall];
      last = Math.max(last, stalls.start[stall]);
    }
    return {
      key, fingerprint: text(key), stalls: list, count: list.length + repeats,
      total: timeOf(list), p50: quantile(durations, 0.5), p95: quantile(durations, 0.95),
      max, harm, cause: heaviest(weights(list, causeOf)), loop: heaviest(loops),
      culprit: heaviest(weights(blamed, (stall) => text(stalls.culprit[stall]))),
      place: heaviest(weights(blamed, (stall) => text(stalls.place[stall]) || "")),
      loops: loops.size, longest: longestOf(list), last, sideTimes: sideTimes(list),
      // "new", "gone" or "regressed"; in a comparison the word of `stallwatch diff`.
      change: Object.hasOwn(data.changes, text(key)) ? data.changes[text(key)] : null,
    };
  });
}

// A stall's shares: [node, microseconds] from first to last.
function sharesOf(stall) {
  const list = [];
  for (let i = stall === 0 ? 0 : stalls.sharesEnd[stall - 1]; i < stalls.sharesEnd[stall]; i += 1) {
    list.push([data.shares.node[i], data.shares.microseconds[i]]);
  }
  return list;
}

// The frames of a stack, innermost first.
function framesOf(node) {
  const frames = [];
  for (let at = node; at !== null; at = data.nodes.caller[at]) frames.push(data.nodes.frame[at]);
  return frames;
}

function sentence(stall) {
  const loop = data.loops[stalls.loop[stall]];
  const verbs = { saturation: [" was saturated for ", " has been saturated for "], spinning: [" spun for ", " has been spinning for "],
    modeStarvation: [" let its default mode wait for ", " has let its default mode wait for "],
    notRun: [" was not run for ", " has not been run for "],
    starvation: [" kept some work waiting for ", " has kept some work waiting for "], overdue: [" took ", " has not ended after "],
    pinned: [" had a pinned thread for ", " has had a pinned thread for "] };
  const verb = verbs[text(stalls.kind[stall])] || [" stalled for ", " stalled and has not come back after "];
  let words = loop.label + verb[text(stalls.state[stall]) === "ended" ? 0 : 1] + duration(stalls.duration[stall]);
  // The page does not have the other threads of a pool.
  const lead = text(stalls.kind[stall]) === "starvation" ? ": one of its threads was in "
    : stalls.lacksCPU[stall] === 1 ? " without a CPU, while it was in " : " in ";
  if (stalls.culprit[stall] !== null) words += lead + text(stalls.culprit[stall]);
  if (stalls.callout[stall] !== null) words += " (" + text(stalls.callout[stall]) + ")";
  if (stalls.heldUp[stall] !== null) words += ", held up by " + text(stalls.heldUp[stall]);
  return words;
}
