// Which stalls are shown: the filters and what they match. Nothing here changes the page.

// A filter that is null, empty or 0 lets everything through. `group` is a fingerprint's index or null for stalls without
// one, so "no group" is undefined.
const newFilters = () => ({
  search: "", loop: null, process: null, context: null, metadata: null, minimum: null, side: null, cause: null, group: undefined,
  functionName: null, range: null,
});

// The stacks with a matching function: a flag for each node. A caller's index is less than those of its callees.
function nodesThrough(isWanted) {
  const flags = new Uint8Array(data.nodes.frame.length);
  const wanted = data.functions.name.map(isWanted);
  for (let node = 0; node < flags.length; node += 1) {
    const caller = data.nodes.caller[node];
    const isMatch = wanted[data.frames.function[data.nodes.frame[node]]] || (caller !== null && flags[caller] === 1);
    flags[node] = isMatch ? 1 : 0;
  }
  return flags;
}

const hasStackIn = (stall, flags) => sharesOf(stall).some(([node]) => flags[node] === 1);

function pairsOf(set) {
  const list = data.metadata[set].map(text);
  return list.flatMap((key, index) => (index % 2 === 0 ? [[key, list[index + 1]]] : []));
}
const pairText = ([key, value]) => key + "=" + value;

function searchTest(words) {
  const pattern = words.trim().toLowerCase();
  const matches = (string) => string !== null && string.toLowerCase().includes(pattern);
  const strings = data.strings.map(matches);
  const isFound = (index) => index !== null && strings[index];
  const loops = data.loops.map((loop) => matches(loop.label) || matches(loop.process));
  const sets = data.metadata.map((_, set) => pairsOf(set).some((pair) => matches(pairText(pair))));
  const nodes = nodesThrough(isFound);
  const columns = [
    stalls.culprit, stalls.place, stalls.cause, stalls.summary, stalls.kind, stalls.callout, stalls.fingerprint,
    stalls.unknown, stalls.kernel,
  ];
  return (stall) =>
    loops[stalls.loop[stall]] || sets[stalls.metadata[stall]] || columns.some((column) => isFound(column[stall])) ||
    matches(data.ids[stall]) || matches(data.contexts[stall] || null) || hasStackIn(stall, nodes);
}

// A test that only stalls pass that all filters let through; the group is left to `inGroup`.
function filterTest(filters) {
  const tests = [];
  if (filters.search.trim() !== "") tests.push(searchTest(filters.search));
  if (filters.loop !== null) tests.push((stall) => data.loops[stalls.loop[stall]].label === filters.loop);
  if (filters.process !== null) tests.push((stall) => data.loops[stalls.loop[stall]].process === filters.process);
  if (filters.context !== null) tests.push((stall) => text(stalls.context[stall]) === filters.context);
  if (filters.metadata !== null) {
    const sets = data.metadata.map((_, set) => pairsOf(set).some((pair) => pairText(pair) === filters.metadata));
    tests.push((stall) => sets[stalls.metadata[stall]]);
  }
  if (filters.minimum > 0) tests.push((stall) => stalls.duration[stall] >= filters.minimum);
  if (filters.side !== null) tests.push((stall) => stalls.side[stall] === filters.side);
  if (filters.cause !== null) tests.push((stall) => causeOf(stall) === filters.cause);
  if (filters.functionName !== null) {
    const nodes = nodesThrough((name) => text(name) === filters.functionName);
    tests.push((stall) => hasStackIn(stall, nodes));
  }
  if (filters.range !== null) {
    const [from, to] = filters.range;
    tests.push((stall) => stalls.start[stall] <= to && stalls.start[stall] + stalls.duration[stall] >= from);
  }
  return (stall) => tests.every((test) => test(stall));
}
const inGroup = (filters) => (stall) => filters.group === undefined || stalls.fingerprint[stall] === filters.group;

// The values with the most stalled time come first; the search finds those beyond the limit.
const maximumChoices = 100;
function choices(valuesOf) {
  const times = tally(allStalls.flatMap((stall) => valuesOf(stall).map((value) => [value, stalls.total[stall]])));
  return byWeight(times).slice(0, maximumChoices);
}
