// One stall in full, with the parts that `stallwatch show` has.

function showDetail(host, stall) {
  const copy = element("button", { type: "button", id: "copy" }, "Copy as Markdown");
  copy.addEventListener("click", () => copyText(markdown(stall), copy));
  const parts = [element("div", { class: "title" }, element("h2", {}, sentence(stall)), copy)];
  if (stalls.place[stall] !== null) parts.push(element("p", { class: "where" }, wherePlace(stall)));
  parts.push(...explanation(stall), ...split(stall));
  if (stalls.unknown[stall] !== null) parts.push(element("p", { class: "unknown" }, text(stalls.unknown[stall])));
  const chart = timeChart(stall);
  parts.push(
    ...sourceLines(stall), ...stacks(stall), ...lockChain(stall), ...peers(stall), ...chart.parts, ...missingStacks(stall),
    ...whatLedToIt(stall), ...otherThreads(stall)
  );
  parts.push(element("h3", {}, "Report"));
  parts.push(
    element(
      "dl", { class: "facts" },
      ...factsOf(stall).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])
    )
  );
  host.replaceChildren(element("div", { class: "parts" }, ...parts));
  host.scrollTop = 0;
  chart.draw();
  drawChart = chart.draw;
}

let drawChart = () => {};

// Why it stalled and what to try.
function explanation(stall) {
  const summary = text(stalls.summary[stall]), advice = text(stalls.advice[stall]);
  if (summary === null) return [];
  const why = element("p", { class: "why" }, causeLabel(causeOf(stall)), " — ", summary);
  if (advice === null) return [why];
  const command = text(stalls.advicePage[stall]), page = data.pages[command];
  const more = page ? element("details", {}, element("summary", {}, command), element("p", { class: "page" }, page)) : " See " + command + ".";
  return [why, element("p", { class: "try" }, element("strong", {}, "Try: "), advice), more];
}

// The samples in order of time, where they differ; workers of a pool run at the same time, so theirs have no order.
function timeChart(stall) {
  const shares = sharesOf(stall);
  const isPool = data.loops[stalls.loop[stall]].thread === null;
  if (isPool || new Set(shares.map(([node]) => node)).size < 2) return { parts: [], draw() {} };
  const canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": "Flame chart: arrow keys move, Enter zooms in, Backspace out" });
  const words = element("p", { class: "words", "aria-live": "polite" });
  const chart = makeFlame(canvas, words, element("span"), { moved() {} });
  const ends = ["0 ms", duration(stalls.duration[stall])].map((end) => element("span", {}, end));
  return {
    parts: [element("h3", {}, "Samples over time"), element("div", { id: "chart" }, canvas), element("div", { class: "axis" }, ...ends), words],
    draw() {
      if (chart.root) chart.draw();
      else chart.set(timeTree(shares), [], "");
    },
  };
}

const wherePlace = (stall) => placeLink(text(stalls.place[stall]), packagePath(text(stalls.place[stall])));

// What is known about a stall besides its cause and stacks: [name, words].
function factsOf(stall) {
  const loop = data.loops[stalls.loop[stall]];
  const metadata = pairsOf(stalls.metadata[stall]).map(pairText).join(" ");
  return [
    ["began", momentText(stalls.start[stall])], ["kind", text(stalls.kind[stall]) + ", " + text(stalls.state[stall])],
    ["threshold", duration(stalls.threshold[stall])], ["loop", loop.label + " (" + loop.kind + ")"],
    ["context", data.contexts[stall] || null], ["thread", loop.thread === null ? null : String(loop.thread)], ["process", loop.process + " (" + loop.pid + ")"],
    ["side", isComparison ? data.sides[stalls.side[stall]].name : null],
    ["repeats", stalls.repeats[stall] ? String(stalls.repeats[stall]) : null],
    ["waiting", text(stalls.waited[stall])], ["confidence", text(stalls.confidence[stall])], ["metadata", metadata],
    ["fingerprint", text(stalls.fingerprint[stall])], ["report", data.ids[stall]],
  ].filter(([, value]) => value);
}

// The parts of the thread's time: [name, microseconds, colour].
const timeParts = (stall) => [
  ["on CPU", stalls.onCPU[stall], causeColours.cpu], ["waiting for a CPU", stalls.runQueue[stall], causeColours.cpuContention],
  ["blocked", stalls.blocked[stall], blockedColour(causeOf(stall))],
];
// What a thread was blocked by is the cause, unless that is about CPUs.
const blockedColour = (cause) => (["cpu", "cpuContention", "throttled"].includes(cause) ? causeColours.unknown : causeColour(cause));

function split(stall) {
  const shares = timeParts(stall);
  const sum = shares.reduce((all, share) => all + share[1], 0);
  if (sum === 0) return [];
  const bar = element("div", { class: "split", role: "img", "aria-label": "Where the time went to" });
  const legend = element("div", { class: "legend" });
  for (const [name, time, colour] of shares) {
    if (time > 0) bar.append(element("span", { style: "background: " + colour + "; flex: " + time / sum }));
    legend.append(dotted(colour, name + " " + duration(time)));
  }
  return [bar, legend];
}

// A heading that opens to a stack; without a stack, a line.
const foldedStack = (words, node, isOpen = false) => node === null ? element("p", {}, words)
  : element("details", { open: isOpen }, element("summary", {}, words), stackList(node));

const lockTitle = (lock) => [lock.kind, lock.function && "in " + lock.function].filter(Boolean).join(" ");

function ownerText(owner) {
  const own = owner.node === null ? undefined : framesOf(owner.node).find((frame) => data.functions.isInApp[data.frames.function[frame]]);
  const place = own === undefined ? "" : ", in " + text(data.functions.name[data.frames.function[own]]) + " (" + placeOf(own)[0] + ")";
  return "held by thread " + owner.thread + (owner.name ? " “" + owner.name + "”" : "") + ", which " + owner.doing + place;
}

function lockChain(stall) {
  const lock = data.locks[stall];
  if (!lock) return [];
  const parts = [element("h3", {}, lock.isDeadlock ? "Deadlock" : "Lock"), element("p", {}, lockTitle(lock))];
  if (lock.reason) parts.push(element("p", { class: "faint" }, lock.reason));
  return [...parts, ...lock.owners.map((owner) => foldedStack(ownerText(owner), owner.node, true))];
}

const titledList = (title, lines) => lines.length === 0 ? []
  : [element("h3", {}, title), element("ul", { class: "reasons" }, ...lines.map((line) => element("li", {}, line)))];

const peers = (stall) => titledList("Waits for", data.peers[stall] || []);

const missingStacks = (stall) => titledList("Samples without a whole stack", linesOf(stalls.reasons[stall]));

// The sampled stacks, the one with the most stalled time first: [node, microseconds].
function stacksByTime(stall) {
  return [...tally(sharesOf(stall))].sort((a, b) => b[1] - a[1]);
}

// The functions of the kernel stand above the first stack, which called into it.
function stacks(stall) {
  const kernel = linesOf(stalls.kernel[stall]);
  return stacksByTime(stall).flatMap(([node, time], index) => {
    const title = "Stack of " + duration(time) + " (" + percent(time, stalls.duration[stall]) + ")";
    if (index > 0) return [foldedStack(title, node)];
    const inKernel = kernel.map((name) => element("li", {}, element("span", { class: "function" }, name), element("span", { class: "place" }, "kernel")));
    if (inKernel.length === 0) return [element("h3", {}, title), stackList(node)];
    const folded = element("summary", {}, counted(inKernel.length, "function", "functions") + " of the kernel");
    return [element("h3", {}, title), element("details", {}, folded, element("ol", { class: "stack kernel" }, ...inKernel)), stackList(node)];
  });
}

// The lines around the culprit, beside those of the lock's owner: that is the code to change.
function sourceLines(stall) {
  const own = stalls.source[stall], [owner] = data.locks[stall] ? data.locks[stall].owners : [];
  const held = owner === undefined || owner.source === own ? null : owner.source;
  const parts = [["Source: holds the lock", held], [held === null ? "Source" : "Source: waits for it", own]];
  const shown = parts.filter(([, source]) => source !== null).map(([title, source]) => {
    const { first, place, lines } = data.sources[source];
    const rows = lines.map((line, index) =>
      element("div", { class: index === place ? "blamed" : "" }, element("span", { class: "line" }, String(first + index)), line || " ")
    );
    const box = element("div", { class: "source", tabindex: "0", role: "group", "aria-label": title }, ...rows);
    return element("div", {}, element("h3", {}, title), box);
  });
  return shown.length === 0 ? [] : [element("div", { class: "sources" }, ...shown)];
}

function whatLedToIt(stall) {
  const history = data.history[stall];
  if (!history) return [];
  const whole = history.window + stalls.duration[stall];
  const span = (begin, length, kind, style = "") => {
    const from = Math.max(begin + history.window, 0), to = Math.min(begin + history.window + length, whole);
    const place = "left: " + from / whole * 100 + "%; width: " + Math.max(to - from, 0) / whole * 100 + "%; ";
    return element("span", { class: kind, style: place + style });
  };
  const rows = history.loops.map((loop, index) => {
    const parts = [];
    let longest = 0;
    for (let turn = 0; turn < loop.turns.length; turn += 2) {
      parts.push(span(loop.turns[turn], loop.turns[turn + 1], "turn"));
      longest = Math.max(longest, loop.turns[turn + 1]);
    }
    const colour = "background: " + causeColour(causeOf(stall));
    if (index === 0) parts.push(span(0, stalls.duration[stall], "stalled", colour));
    const count = loop.turns.length / 2;
    const words = count === 0 ? "no turn of 1 ms" : count + (count === 1 ? " turn" : " turns") + ", at most " + duration(longest);
    return element(
      "div", { class: "loop" }, element("span", { class: "label" }, loop.label),
      element("div", { class: "turns", role: "img", "aria-label": loop.label + ": " + words }, ...parts),
      element("span", { class: "faint" }, words)
    );
  });
  return [element("h3", {}, "The " + duration(history.window) + " before, and the stall"), element("div", { class: "history" }, ...rows)];
}

function otherThreads(stall) {
  const threads = data.threads[stall];
  if (!threads) return [];
  return [element("h3", {}, "Other threads"), ...threads.map((other) => foldedStack(threadText(other), other.node))];
}

function threadText(other) {
  const wait = other.waitsFor && "waits for " + other.waitsFor + (other.owner === null ? "" : " of thread " + other.owner);
  const parts = [
    "thread " + other.thread + (other.name ? " “" + other.name + "”" : ""), other.state, other.call && "in " + other.call, wait,
    other.isDeadlock && "deadlocked", other.reason,
  ];
  return parts.filter(Boolean).join(", ");
}

// Where a frame's code is: [short, long].
function placeOf(frame) {
  const name = data.frames.function[frame];
  const file = text(data.functions.file[name]);
  const line = data.frames.line[frame] === null ? "" : ":" + data.frames.line[frame];
  return file ? [fileName(file) + line, file + line] : [text(data.functions.image[name]) || "", ""];
}

// A stack's frames, innermost first, with runs of runtime frames folded.
function stackList(node) {
  const items = [];
  let folded = [];
  const unfold = () => {
    if (folded.length === 0) return;
    const title = counted(folded.length, "runtime frame", "runtime frames");
    items.push(
      element("li", { class: "folded" }, element("details", {}, element("summary", {}, title), element("ol", { class: "stack" }, ...folded)))
    );
    folded = [];
  };
  for (const frame of framesOf(node)) {
    const isRuntime = data.functions.isRuntimeFrame[data.frames.function[frame]];
    if (!isRuntime) unfold();
    (isRuntime ? folded : items).push(frameItem(frame));
  }
  unfold();
  return element("ol", { class: "stack" }, ...items);
}

function frameItem(frame) {
  const name = data.frames.function[frame];
  const [short, long] = placeOf(frame);
  const marks = [data.frames.isInlined[frame] && "inlined", data.frames.isAsyncCaller[frame] && "async"].filter(Boolean);
  const words = element("span", { class: "function" }, text(data.functions.name[name]));
  for (const mark of marks) words.append(element("em", {}, mark));
  return element(
    "li", { class: data.functions.isInApp[name] ? "app" : "", title: packagePath(long) }, words,
    element("span", { class: "place" }, placeLink(long, short))
  );
}
