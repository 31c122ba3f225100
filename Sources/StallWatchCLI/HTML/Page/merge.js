// Stacks merged by function into one tree; each node has the stalled time of the stacks through it.

// The functions of a stack, outermost first; a function that calls itself counts once.
function functionsOf(node, isBottomUp, showsPlumbing) {
  const all = framesOf(node).map((frame) => data.frames.function[frame]);
  let shown = showsPlumbing ? all : all.filter((name) => !data.functions.isRuntimeFrame[name]);
  if (shown.length === 0) shown = all;
  shown = shown.filter((name, index) => index === 0 || name !== shown[index - 1]);
  return isBottomUp ? shown : shown.reverse();
}

// A tree of nodes {name, parent, depth, total, own, count, children, begin}; `begin` is the node's horizontal position,
// in microseconds from the left.
function mergedTree(indices, isBottomUp, showsPlumbing) {
  const root = { name: -1, parent: null, depth: 0, total: 0, own: 0, count: 0, last: -1, children: new Map(), begin: 0 };
  const paths = new Map();
  for (const stall of indices) {
    for (const [node, weight] of sharesOf(stall)) {
      let path = paths.get(node);
      if (!path) {
        path = [root];
        for (const name of functionsOf(node, isBottomUp, showsPlumbing)) {
          const parent = path[path.length - 1];
          let child = parent.children.get(name);
          if (!child) {
            child = {
              name, parent, depth: parent.depth + 1, total: 0, own: 0, count: 0, last: -1, children: new Map(), begin: 0,
            };
            parent.children.set(name, child);
          }
          path.push(child);
        }
        paths.set(node, path);
      }
      for (const step of path) {
        step.total += weight;
        if (step.last !== stall) {
          step.last = stall;
          step.count += 1;
        }
      }
      path[path.length - 1].own += weight;
    }
  }
  // Without recursion, because a stack may be deeper than JavaScript's own.
  const waiting = [root];
  let depth = 0;
  while (waiting.length > 0) {
    const node = waiting.pop();
    depth = Math.max(depth, node.depth);
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
  root.deepest = depth;
  return root;
}

const functionName = (node) => (node.name < 0 ? "all stalls" : text(data.functions.name[node.name]));
