// Stacks merged by function into one tree; each node has the stalled time of the stacks through it, and in a comparison that of
// each side.

// The functions of a stack, outermost first; a function that calls itself counts once.
function functionsOf(node, isBottomUp, showsRuntimeFrames) {
  const all = framesOf(node).map((frame) => data.frames.function[frame]);
  let shown = showsRuntimeFrames ? all : all.filter((name) => !data.functions.isRuntimeFrame[name]);
  if (shown.length === 0) shown = all;
  shown = shown.filter((name, index) => index === 0 || name !== shown[index - 1]);
  return isBottomUp ? shown : shown.reverse();
}

const newNode = (name, parent) => ({
  name, parent, depth: parent ? parent.depth + 1 : 0, total: 0, own: 0, count: 0, last: -1, children: new Map(), begin: 0,
  sideTimes: [0, 0],
});

// A tree of nodes {name, parent, depth, total, own, count, children, begin}; `begin` is the node's horizontal position,
// in microseconds from the left.
function mergedTree(indices, isBottomUp, showsRuntimeFrames) {
  const root = newNode(-1, null);
  const paths = new Map();
  for (const stall of indices) {
    // A report stands for the stalls, too, that have none of their own.
    const factor = stalls.duration[stall] > 0 ? stalls.total[stall] / stalls.duration[stall] : 1;
    for (const [node, share] of sharesOf(stall)) {
      const weight = Math.round(share * factor);
      let path = paths.get(node);
      if (!path) {
        path = [root];
        for (const name of functionsOf(node, isBottomUp, showsRuntimeFrames)) {
          const parent = path[path.length - 1];
          if (!parent.children.has(name)) parent.children.set(name, newNode(name, parent));
          path.push(parent.children.get(name));
        }
        paths.set(node, path);
      }
      for (const step of path) {
        step.total += weight;
        step.sideTimes[stalls.side[stall]] += weight;
        if (step.last !== stall) {
          step.last = stall;
          step.count += 1 + stalls.repeats[stall];
        }
      }
      path[path.length - 1].own += weight;
    }
  }
  // Without recursion, because a stack may be deeper than JavaScript's own.
  const waiting = [root];
  while (waiting.length > 0) {
    const node = waiting.pop();
    node.children = [...node.children.values()].sort(
      (a, b) => b.total - a.total || (functionName(a) < functionName(b) ? -1 : 1)
    );
    let begin = node.begin;
    for (const child of node.children) {
      child.begin = begin;
      begin += child.total;
      waiting.push(child);
    }
  }
  return root;
}

// The shares of one stall as such a tree in order of time: only neighbors are merged, and no node counts stalls. Of the callers
// that all stacks have, the last one stays.
function timeTree(shares) {
  const paths = shares.map(([node]) => functionsOf(node, false, false));
  const whole = paths.filter((path) => path.length > 1);
  let common = 0;
  while (whole.length > 0 && whole.every((path) => path.length > common + 1 && path[common] === whole[0][common])) common += 1;
  const root = { ...newNode(-1, null), children: [], title: "this stall" };
  let end = 0;
  shares.forEach(([, share], index) => {
    let at = root;
    for (const name of paths[index].length > 1 ? paths[index].slice(Math.max(common - 1, 0)) : paths[index]) {
      let child = at.children[at.children.length - 1];
      if (!child || child.name !== name || child.begin + child.total !== end) {
        child = { ...newNode(name, at), children: [], begin: end };
        at.children.push(child);
      }
      at.total += share;
      at = child;
    }
    at.total += share;
    at.own += share;
    end += share;
  });
  return root;
}

const functionName = (node) => (node.name < 0 ? node.title || "all stalls" : text(data.functions.name[node.name]));
