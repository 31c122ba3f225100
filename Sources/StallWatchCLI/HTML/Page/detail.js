// One stall in full.

function showDetail(host, stall) {
  const loop = data.loops[stalls.loop[stall]];
  const parts = [element("h2", {}, sentence(stall))];
  if (stalls.place[stall] !== null) parts.push(element("p", { class: "where" }, text(stalls.place[stall])));
  const summary = text(stalls.summary[stall]);
  if (summary !== null) {
    parts.push(element("p", { class: "why" }, causeLabel(causeOf(stall)), " — ", summary));
    parts.push(...split(stall));
  }
  parts.push(...stacks(stall));
  parts.push(...lockChain(stall));
  const facts = [
    ["began", timeText(stalls.start[stall])], ["kind", text(stalls.kind[stall]) + ", " + text(stalls.state[stall])],
    ["threshold", duration(stalls.threshold[stall])], ["loop", loop.label + " (" + loop.kind + ")"],
    ["thread", loop.thread === null ? null : String(loop.thread)],
    ["process", loop.process + " (" + loop.pid + ")"], ["repeats", stalls.repeats[stall] ? String(stalls.repeats[stall]) : null],
    ["confidence", text(stalls.confidence[stall])], ["metadata", text(stalls.metadata[stall])],
    ["fingerprint", text(stalls.fingerprint[stall])], ["report", data.ids[stall]],
  ];
  parts.push(element("h3", {}, "Report"));
  parts.push(
    element(
      "dl", { class: "facts" },
      ...facts.filter(([, value]) => value).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])
    )
  );
  host.replaceChildren(...parts);
  host.scrollTop = 0;
}

// The parts of the thread's time: on a CPU, waiting for a CPU, blocked.
function split(stall) {
  const shares = [
    ["on CPU", stalls.onCPU[stall], causeColours.cpu], ["ready to run", stalls.runQueue[stall], causeColours.cpuContention],
    ["blocked", stalls.blocked[stall], causeColours.io],
  ];
  const sum = shares.reduce((all, share) => all + share[1], 0);
  if (sum === 0) return [];
  const bar = element("div", { class: "split", role: "img", "aria-label": "Where the time went to" });
  const legend = element("div", { class: "legend" });
  for (const [name, time, colour] of shares) {
    const part = element("span");
    part.style.background = colour;
    part.style.flex = String(time / sum);
    if (time > 0) bar.append(part);
    const dot = element("span", { class: "dot" });
    dot.style.background = colour;
    legend.append(element("span", { class: "cause" }, dot, name + " " + duration(time)));
  }
  return [bar, legend];
}

// The chain of owners: the lock's owner, the owner of the lock that this owner waits for, and so on.
function lockChain(stall) {
  const lock = data.locks[stall];
  if (!lock) return [];
  const title = [lock.kind, lock.label, lock.function && "in " + lock.function].filter(Boolean).join(" ");
  const parts = [element("h3", {}, lock.isDeadlock ? "Deadlock" : "Lock"), element("p", {}, title)];
  if (lock.reason) parts.push(element("p", { class: "faint" }, lock.reason));
  for (const owner of lock.owners) {
    const doing = owner.waitsFor ? "waits for a " + owner.waitsFor : owner.call ? "is in " + owner.call
      : owner.isRunning ? "is running" : "is blocked";
    const words = "held by thread " + owner.thread + (owner.name ? " “" + owner.name + "”" : "") + ", which " + doing;
    parts.push(
      owner.node === null ? element("p", {}, words)
        : element("details", {}, element("summary", {}, words), stackList(owner.node))
    );
  }
  return parts;
}

// The sampled stacks, the one with the most stalled time first.
function stacks(stall) {
  const times = new Map();
  for (const [node, time] of sharesOf(stall)) times.set(node, (times.get(node) || 0) + time);
  return [...times].sort((a, b) => b[1] - a[1]).flatMap(([node, time], index) => {
    const title = "Stack of " + duration(time) + " (" + percent(time, stalls.duration[stall]) + ")";
    if (index === 0) return [element("h3", {}, title), stackList(node)];
    return [element("details", {}, element("summary", {}, title), stackList(node))];
  });
}

function stackList(node) {
  return element(
    "ol", { class: "stack" },
    ...framesOf(node).map((frame) => {
      const name = data.frames.function[frame];
      const file = text(data.functions.file[name]);
      const line = data.frames.line[frame];
      const place = file ? fileName(file) + (line === null ? "" : ":" + line) : text(data.functions.image[name]) || "";
      const marks = [data.frames.isInlined[frame] && "inlined", data.frames.isAsyncCaller[frame] && "async"].filter(Boolean);
      const words = element("span", { class: "function" }, text(data.functions.name[name]));
      for (const mark of marks) words.append(element("em", {}, mark));
      return element(
        "li", { class: data.functions.isInApp[name] ? "app" : "", title: file ? file + (line === null ? "" : ":" + line) : "" },
        words, element("span", { class: "place" }, place)
      );
    })
  );
}
