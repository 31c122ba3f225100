// The stalls over time, with a lane for each loop. A bar begins at its stall's begin. Its height is the duration on a
// logarithmic scale, so that half a second stays visible beside a minute.

// show(stall): the user chose a stall. brushed(range): the user selected a range of times.
function makeTimeline(canvas, words, { show, brushed }) {
  const laneHeight = 28, axisHeight = 20;
  // The loops on the first screen: the busiest ones, without those that are nearly empty.
  const mostLanes = 4, shownShare = 0.95;
  let labelWidth = 120;
  const end = allStalls.reduce((time, stall) => Math.max(time, stalls.start[stall] + stalls.duration[stall]), 1);
  const all = { from: -end * 0.01, to: end + end * 0.01 };
  let view = { ...all };
  let range = null;
  let shown = [];
  let current = null;
  let drag = null;
  let isFolded = true;

  // Loops with the same label of several processes share a lane.
  const laneTimes = tally(allStalls.map((stall) => [data.loops[stalls.loop[stall]].label, stalls.total[stall]]));
  const lanes = [...laneTimes.keys()].sort((a, b) => laneTimes.get(b) - laneTimes.get(a));
  const laneOf = data.loops.map((loop) => lanes.indexOf(loop.label));
  let rows = [];
  const rowOf = (stall) => rows.indexOf(laneOf[stalls.loop[stall]]);

  function arrange() {
    const times = lanes.map(() => 0);
    for (const stall of shown) times[laneOf[stalls.loop[stall]]] += stalls.total[stall];
    const order = [...lanes.keys()].sort((a, b) => times[b] - times[a]);
    const kept = new Set(current === null ? [] : [laneOf[stalls.loop[current]]]);
    let left = timeOf(shown) * (1 - shownShare);
    for (let place = order.length - 1; place >= 0; place -= 1) {
      left -= times[order[place]];
      if (!isFolded || place === 0 || (place < mostLanes && left < 0)) kept.add(order[place]);
    }
    rows = [...kept].sort((a, b) => a - b);
  }
  const longest = stalls.duration.reduce((a, b) => Math.max(a, b), 1);
  const shortest = stalls.duration.reduce((a, b) => Math.min(a, b), longest);
  const height = (stall) => {
    const span = Math.log(longest / Math.max(shortest, 1)) || 1;
    return 7 + (laneHeight - 13) * (Math.log(Math.max(stalls.duration[stall], 1) / Math.max(shortest, 1)) / span);
  };

  const floor = (row) => axisHeight + (row + 1) * laneHeight;
  const plotWidth = () => canvas.clientWidth - labelWidth - 12;
  const x = (time) => labelWidth + ((time - view.from) / (view.to - view.from)) * plotWidth();
  const timeAt = (pixel) => view.from + ((pixel - labelWidth) / plotWidth()) * (view.to - view.from);

  function ticks() {
    const steps = [
      1e3, 1e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 3e7, 6e7, 12e7, 3e8, 6e8, 18e8, 36e8, 72e8, 108e8, 216e8, 432e8, 864e8,
      1728e8, 3456e8, 6048e8, 12096e8, 26784e8,
    ];
    const wanted = (view.to - view.from) / Math.max(plotWidth() / (canvas.clientWidth < 600 ? 90 : 120), 1);
    const step = steps.find((candidate) => candidate >= wanted) || 316224e8;
    const list = [];
    for (let at = Math.ceil((data.begin + view.from) / step) * step; at < data.begin + view.to; at += step) list.push(at);
    return list.map((at) => {
      const iso = new Date(at / 1000).toISOString();
      // A day begins with its date: 00:00 may be that of several.
      const minute = iso.slice(11, 16) === "00:00" ? iso.slice(5, 10) : iso.slice(11, 16);
      const label = step >= 864e8 ? iso.slice(0, 10) : step >= 6e7 ? minute : iso.slice(11, step < 1e6 ? 23 : 19);
      return { at: at - data.begin, label };
    }).filter(({ at }) => x(at) >= labelWidth && x(at) < canvas.clientWidth - 30);
  }

  function draw() {
    arrange();
    const context = sized(canvas, rows.length * laneHeight + axisHeight);
    labelWidth = canvas.clientWidth < 600 ? 76 : 120;
    const style = getComputedStyle(document.body);
    const colour = (name) => style.getPropertyValue(name);
    context.font = "11.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    const bottom = axisHeight + rows.length * laneHeight;
    for (const tick of ticks()) {
      const at = Math.round(x(tick.at)) + 0.5;
      context.strokeStyle = colour("--line");
      context.beginPath();
      context.moveTo(at, axisHeight);
      context.lineTo(at, bottom);
      context.stroke();
      context.fillStyle = colour("--faint");
      context.textAlign = "center";
      context.fillText(tick.label, at, axisHeight / 2);
    }
    context.textAlign = "left";
    rows.forEach((lane, row) => {
      context.fillStyle = colour("--line");
      context.fillRect(labelWidth, floor(row) - 1, plotWidth(), 1);
      context.fillStyle = colour("--text");
      context.fillText(fitted(context, lanes[lane], labelWidth - 26), 14, floor(row) - laneHeight / 2);
    });
    context.save();
    context.beginPath();
    context.rect(labelWidth, axisHeight, plotWidth(), bottom - axisHeight);
    context.clip();
    context.globalAlpha = shown.length > 500 ? 0.65 : 0.9;
    for (const stall of shown) if (rowOf(stall) >= 0) bar(context, stall, causeColour(causeOf(stall)));
    context.globalAlpha = 1;
    if (current !== null) {
      bar(context, current, causeColour(causeOf(current)));
      context.strokeStyle = colour("--text");
      context.lineWidth = 2;
      context.strokeRect(...box(current));
    }
    if (drag) {
      const brush = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
      context.fillStyle = colour("--accent");
      context.globalAlpha = 0.16;
      context.fillRect(x(brush[0]), axisHeight, Math.max(x(brush[1]) - x(brush[0]), 1), bottom - axisHeight);
      context.globalAlpha = 1;
    }
    context.restore();
  }

  // The rectangle of a stall's bar: left, top, width, height.
  function box(stall) {
    const begin = x(stalls.start[stall]);
    const end = x(stalls.start[stall] + stalls.duration[stall]);
    const top = floor(rowOf(stall)) - 2 - height(stall);
    return [begin, top, Math.max(end - begin, 2.5), height(stall)];
  }

  function bar(context, stall, colour) {
    context.fillStyle = colour;
    context.fillRect(...box(stall));
  }

  function stallAt(event) {
    const row = Math.floor((event.offsetY - axisHeight) / laneHeight);
    const from = timeAt(event.offsetX - 3), to = timeAt(event.offsetX + 3);
    const isNear = (stall) => stalls.start[stall] <= to && stalls.start[stall] + stalls.duration[stall] >= from;
    return longestOf(shown.filter((stall) => isNear(stall) && rowOf(stall) === row));
  }

  function zoom(factor) {
    const middle = current === null ? (view.from + view.to) / 2 : stalls.start[current];
    const width = Math.min((view.to - view.from) * factor, all.to - all.from);
    const from = Math.min(Math.max(middle - width / 2, all.from), all.to - width);
    if (width > 1000) view = { from, to: from + width };
    draw();
  }

  function go(steps) {
    if (shown.length === 0) return;
    const inTime = [...shown].sort((a, b) => stalls.start[a] - stalls.start[b]);
    const place = inTime.indexOf(current);
    const next = place < 0 ? (steps > 0 ? 0 : inTime.length - 1) : Math.min(Math.max(place + steps, 0), inTime.length - 1);
    show(inTime[next]);
  }

  function select(stall) {
    current = stall;
    const width = view.to - view.from;
    if (stalls.start[stall] < view.from || stalls.start[stall] > view.to) {
      view = { from: stalls.start[stall] - width / 2, to: stalls.start[stall] + width / 2 };
    }
    words.textContent = momentText(stalls.start[stall]) + ": " + sentence(stall);
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.offsetX < labelWidth || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { from: timeAt(event.offsetX), to: timeAt(event.offsetX), x: event.clientX };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      drag.to = timeAt(event.offsetX);
      draw();
      return;
    }
    const stall = stallAt(event);
    canvas.style.cursor = stall === null ? "crosshair" : "pointer";
    if (stall === null) hideTip();
    else showTip(event, sentence(stall), [momentText(stalls.start[stall]), text(stalls.summary[stall]) || ""]);
  });
  // A touch became a scroll.
  canvas.addEventListener("pointercancel", () => {
    drag = null;
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (event.button !== 0) return;
    const made = drag;
    drag = null;
    if (made && Math.abs(event.clientX - made.x) > 4) {
      brushed([Math.min(made.from, made.to), Math.max(made.from, made.to)]);
      return;
    }
    const stall = stallAt(event);
    if (stall !== null) show(stall);
    draw();
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", (event) => {
    const actions = {
      ArrowRight: () => go(1), ArrowLeft: () => go(-1), PageDown: () => go(10), PageUp: () => go(-10),
      Home: () => go(-stallCount), End: () => go(stallCount), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
      Enter: () => { if (view.to - view.from < all.to - all.from) brushed([view.from, view.to]); },
    };
    if (!(event.key in actions) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  });

  return {
    // What these set is drawn by the next `fold`.
    set(list) { shown = list; },
    select,
    // Shows a range of times from edge to edge; null shows all times. The same range again changes nothing.
    setRange(wanted) {
      if (String(wanted) === String(range)) return;
      range = wanted;
      view = range === null ? { ...all } : { from: range[0], to: Math.max(range[1], range[0] + 1000) };
    },
    reset() { view = { ...all }; },
    fold(wanted) {
      isFolded = wanted;
      draw();
    },
    laneCount: lanes.length,
    get hiddenLanes() { return lanes.length - rows.length; },
    get axis() { return ticks().map(({ label }) => label); },
    get view() { return [view.from, view.to]; },
  };
}

// A canvas as wide as its container, at the screen's resolution. Browsers draw nothing on a canvas higher than 32,767
// pixels; stalls below that are only in the lists and the stacks.
function sized(canvas, wanted) {
  const ratio = window.devicePixelRatio || 1;
  const height = Math.min(wanted, Math.floor(32000 / ratio));
  canvas.style.height = height + "px";
  canvas.width = Math.max(Math.round(canvas.clientWidth * ratio), 1);
  canvas.height = Math.max(Math.round(height * ratio), 1);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function fitted(context, words, width) {
  if (context.measureText(words).width <= width) return words;
  let low = 0, high = words.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (context.measureText(words.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? words.slice(0, low) + "…" : "";
}

const tip = document.getElementById("tip");
function showTip(event, title, lines) {
  tip.replaceChildren(element("b", {}, title), ...lines.filter(Boolean).map((line) => element("span", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(Math.min(event.clientX + 14, window.innerWidth - box.width - 8), 8) + "px";
  tip.style.top = (event.clientY + 18 + box.height > window.innerHeight ? event.clientY - box.height - 12 : event.clientY + 18) + "px";
}
function hideTip() { tip.hidden = true; }
