// The flame graph: the merged tree, callers above callees. A function's width is its stalled time. In a comparison it is red
// where the stalled time per hour became more, and blue where it became less.

// moved(): the user zoomed, or another frame is the current one.
function makeFlame(canvas, words, matchWords, { moved }) {
  const rowHeight = 19;
  let root = null;
  let zoom = null;
  // The zoomed node and its callers.
  let above = new Set();
  let current = null;
  let pattern = "";

  const matches = (node) => pattern !== "" && node.name >= 0 && functionName(node).toLowerCase().includes(pattern);
  const isInApp = (node) => node.name >= 0 && data.functions.isInApp[node.name];
  const image = (node) => (node.name < 0 ? null : text(data.functions.image[node.name]));
  const file = (node) => (node.name < 0 ? null : text(data.functions.file[node.name]));

  // Above the zoomed node, its callers have the whole width; below it, the width is its own.
  const x = (node) => (isAbove(node) ? 0 : ((node.begin - zoom.begin) / zoom.total) * canvas.clientWidth);
  const width = (node) => (isAbove(node) ? canvas.clientWidth : (node.total / zoom.total) * canvas.clientWidth);
  const isAbove = (node) => above.has(node);
  // Of the children of an ancestor of the zoomed node, only the one on the path to that node is shown.
  const shownChildren = (node) => (node === zoom || !isAbove(node) ? node.children : node.children.filter(isAbove));

  function draw() {
    if (!root || root.total === 0) {
      sized(canvas, rowHeight);
      return;
    }
    const visible = [];
    const waiting = [root];
    let deepest = 0;
    while (waiting.length > 0) {
      const node = waiting.pop();
      if (width(node) < 0.6) continue;
      visible.push(node);
      deepest = Math.max(deepest, node.depth);
      waiting.push(...shownChildren(node));
    }
    const context = sized(canvas, (deepest + 1) * rowHeight + 6);
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    context.font = "12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
    context.textBaseline = "middle";
    for (const node of visible) {
      const left = x(node), top = node.depth * rowHeight, wide = Math.max(width(node) - 1, 0.6);
      context.fillStyle = fill(node, isDark);
      context.fillRect(left, top, wide, rowHeight - 1);
      if (node === current) {
        context.strokeStyle = isDark ? "#ffffff" : "#101828";
        context.lineWidth = 2;
        context.strokeRect(left + 1, top + 1, Math.max(wide - 2, 1), rowHeight - 3);
      }
      if (wide > 26) {
        context.fillStyle = isDark === matches(node) ? "#1b1f27" : "#f2f4f7";
        context.fillText(fitted(context, functionName(node), wide - 8), left + 4, top + rowHeight / 2);
      }
    }
  }

  // The app's own code is green, other code is grey, and matches of the search are inverted.
  function fill(node, isDark) {
    if (matches(node)) return isDark ? "#e6e9ef" : "#1b1f27";
    if (isComparison && node.count > 0) return changeFill(node, isDark);
    if (node.name < 0) return isDark ? "#39404d" : "#d9dee7";
    let hash = 0;
    for (const character of functionName(node)) hash = (hash * 31 + character.codePointAt(0)) >>> 0;
    const dimmed = isAbove(node) && node !== zoom;
    if (isInApp(node)) {
      // At most 37 % in the dark, for a contrast of 4.5 with the words.
      const light = (isDark ? 31 : 70) + (hash % 7) - (dimmed ? (isDark ? 8 : -10) : 0);
      return "hsl(" + (112 + (hash % 18)) + " " + (isDark ? 30 : 42) + "% " + light + "%)";
    }
    const light = (isDark ? 25 : 85) + (hash % 5) - (dimmed ? (isDark ? 4 : -4) : 0);
    return "hsl(" + (205 + (hash % 25)) + " " + (isDark ? 14 : 22) + "% " + light + "%)";
  }

  // The stronger, the larger the difference between the sides' rates, as a part of the larger one.
  function changeFill(node, isDark) {
    const [before, after] = node.sideTimes.map(rate);
    const change = (after - before) / Math.max(after, before, Number.MIN_VALUE);
    const strength = Math.abs(change);
    const hue = change > 0 ? 8 : 215;
    const light = isDark ? 26 + 16 * strength : 92 - 26 * strength;
    return "hsl(" + hue + " " + Math.round(10 + 75 * strength) + "% " + Math.round(light) + "%)";
  }

  const changeText = (node) => isComparison && node.count > 0 ? node.sideTimes.map((time, side) => rateText(rate(time, side))).join(" → ") : null;
  const countText = (node) => node.count > 0 ? counted(node.count, "stall", "stalls") : duration(node.begin) + " to " + duration(node.begin + node.total);

  function describe() {
    if (!current) return;
    const parts = [
      functionName(current), duration(current.total) + " (" + percent(current.total, root.total) + ")",
      "itself " + duration(current.own), countText(current), changeText(current), image(current),
      file(current),
    ];
    words.textContent = parts.filter(Boolean).join(" · ");
  }

  function select(node) {
    current = node;
    describe();
    draw();
    moved();
    const scroll = canvas.parentElement;
    const top = node.depth * rowHeight;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + rowHeight > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + rowHeight - scroll.clientHeight;
  }

  function setZoom(node) {
    zoom = node;
    above = new Set();
    for (let at = node; at; at = at.parent) above.add(at);
  }

  function zoomTo(node) {
    setZoom(node);
    select(node);
  }

  function sibling(steps) {
    if (!current.parent) return current;
    const row = shownChildren(current.parent);
    return row[Math.min(Math.max(row.indexOf(current) + steps, 0), row.length - 1)];
  }

  function nodeAt(event) {
    if (!root || root.total === 0) return null;
    const depth = Math.floor(event.offsetY / rowHeight);
    let node = root;
    while (node && node.depth < depth) {
      node = shownChildren(node).find((child) => x(child) <= event.offsetX && event.offsetX < x(child) + width(child));
    }
    return node || null;
  }

  // Matching nodes, from the outermost inwards and the largest first.
  function found() {
    const list = [];
    const waiting = root && pattern !== "" ? [root] : [];
    for (let next = 0; next < waiting.length; next += 1) {
      if (matches(waiting[next])) list.push(waiting[next]);
      waiting.push(...waiting[next].children);
    }
    return list;
  }

  // The stalled time of all stacks with a match. Of nested matches only the outermost counts.
  function foundTime() {
    let time = 0;
    const waiting = [root];
    while (waiting.length > 0) {
      const node = waiting.pop();
      if (matches(node)) time += node.total;
      else waiting.push(...node.children);
    }
    return time;
  }

  canvas.addEventListener("click", (event) => {
    const node = nodeAt(event);
    if (node) zoomTo(node);
  });
  canvas.addEventListener("pointermove", (event) => {
    const node = nodeAt(event);
    canvas.style.cursor = node ? "pointer" : "default";
    if (!node) return hideTip();
    showTip(event, functionName(node), [
      duration(node.total) + " · " + percent(node.total, root.total) + " · itself " + duration(node.own) + " · " +
        countText(node),
      changeText(node), [image(node), file(node)].filter(Boolean).join(" · "),
    ]);
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", (event) => {
    if (!current || event.ctrlKey || event.metaKey) return;
    const actions = {
      ArrowDown: () => select(current.children[0] || current),
      ArrowUp: () => select(current.parent || current),
      ArrowLeft: () => select(sibling(-1)),
      ArrowRight: () => select(sibling(1)),
      Enter: () => zoomTo(current),
      " ": () => zoomTo(current),
      Backspace: () => zoomTo(zoom.parent || root),
      Home: () => zoomTo(root),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  });

  return {
    // Shows a tree, zoomed in along a path of child numbers as far as the tree has them, and marks what matches a search.
    set(tree, path, wanted) {
      root = tree;
      let node = tree;
      for (const child of path) {
        if (!node.children[child]) break;
        node = node.children[child];
      }
      current = node;
      setZoom(node);
      pattern = wanted.trim().toLowerCase();
      matchWords.textContent = pattern === "" ? ""
        : counted(found().length, "match", "matches") + ", " + percent(foundTime(), root.total);
      draw();
      describe();
    },
    draw,
    next() {
      const list = found();
      if (list.length > 0) zoomTo(list[(list.indexOf(zoom) + 1) % list.length]);
    },
    zoomOut() { zoomTo(root); },
    get path() {
      const path = [];
      for (let node = zoom; node && node.parent; node = node.parent) path.unshift(node.parent.children.indexOf(node));
      return path;
    },
    get isZoomed() { return root !== null && zoom !== root; },
    get root() { return root; },
    get zoom() { return zoom; },
    get current() { return current; },
    focus: () => canvas.focus(),
  };
}
