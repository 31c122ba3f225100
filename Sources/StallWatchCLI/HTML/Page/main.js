// The page's state (filters, chosen stall) and the parts that show it.

const filters = newFilters();
let chosenStall = null;
let tab = "groups";
let view = "detail";

const by = (value) => (a, b) => value(b) - value(a);
const byName = (value) => (a, b) => (value(a) || "").localeCompare(value(b) || "");
const figure = (title, value, from, width = "62px") => ({
  title, width, from, isNumber: true, cell: (group) => duration(value(group)), compare: by(value), isFirst: title === "total",
});
const rateOf = (group, side) => rate(group.sideTimes[side], side);
const sideFigure = (title, side, from) => ({
  title, width: "76px", from, isNumber: true, cell: (group) => rateText(rateOf(group, side)), compare: by((group) => rateOf(group, side)),
});
// What is new or worse comes first, and then the largest change.
const changes = ["new", "worse", "new?", "better", "gone", "gone?", null];
const changeSize = (group) => Math.abs(rateOf(group, 1) - rateOf(group, 0));
const worstChange = (a, b) => changes.indexOf(a.change) - changes.indexOf(b.change) || changeSize(b) - changeSize(a);
const hasHarm = stalls.harm.some((harm) => harm !== null);
const groupList = makeList(
  byId("groups"), "Groups",
  [
    {
      title: "culprit", width: "minmax(80px, 1fr)", class: "name", cell: groupTitle, compare: byName((group) => group.culprit),
      tip: (group) => [group.culprit || "no culprit", group.cause, ...groupWords(group)].join("\n"),
    },
    ...(isComparison
      ? [{ title: "change", width: "60px", isFirst: true, cell: (group) => group.change || "same", compare: worstChange }]
      : [{ title: "over time", width: "66px", from: 460, cell: sparkline, tip: () => "", compare: by((group) => group.last) }]),
    ...(isComparison
      ? [sideFigure("before", 0, 560), sideFigure("after", 1, 560)]
      : [figure("p50", (group) => group.p50, 860), figure("p95", (group) => group.p95, 860), figure("max", (group) => group.max, 860)]),
    // How long others waited for the loops: what is not known comes after what waited.
    ...(hasHarm ? [{
      title: "harm", width: "62px", from: isComparison ? 860 : 560, isNumber: true,
      compare: by((group) => (group.harm === null ? 0.5 : group.harm)),
      cell: (group) => (group.harm === null ? "?" : group.harm === 0 ? "none" : duration(group.harm)),
    }] : []),
    { title: "count", width: "46px", isNumber: true, cell: (group) => number(group.count), compare: by((group) => group.count) },
    figure("total", (group) => group.total, 0, "88px"),
    {
      // The culprit needs the room; the column over time has the same order.
      title: "last seen", width: "94px", from: isComparison ? 860 : hasHarm ? 640 : 560, class: "faint",
      compare: by((group) => group.last), cell: (group) => timeText(group.last).slice(5, 16), tip: (group) => momentText(group.last),
    },
  ],
  {
    rowHeight: 44,
    keyOf: (group) => group.key,
    chosen: (group) => filters.group === group.key,
    choose: (group) => {
      filters.group = filters.group === group.key ? undefined : group.key;
      if (filters.group !== undefined) show(group.longest);
      view = "group";
      changed(null);
      reveal();
    },
  }
);
const stallList = makeList(
  byId("stalls"), "Reports",
  [
    {
      title: "began", width: "172px", from: 560, class: "faint", cell: (stall) => timeText(stalls.start[stall]).slice(0, 23),
      tip: (stall) => momentText(stalls.start[stall]),
      compare: (a, b) => stalls.start[a] - stalls.start[b],
    },
    {
      title: "duration", width: "76px", isNumber: true, isFirst: true, cell: (stall) => duration(stalls.duration[stall]),
      compare: by((stall) => stalls.duration[stall]),
    },
    { title: "cause", width: "84px", cell: (stall) => causeLabel(causeOf(stall)), compare: byName(causeOf) },
    {
      title: "culprit", width: "minmax(80px, 1fr)", class: "name", cell: (stall) => text(stalls.culprit[stall]) || "—",
      compare: byName((stall) => text(stalls.culprit[stall])),
    },
    {
      title: "loop", width: "70px", from: 480, class: "faint", cell: (stall) => data.loops[stalls.loop[stall]].label,
      compare: byName((stall) => data.loops[stalls.loop[stall]].label),
    },
  ],
  {
    chosen: (stall) => stall === chosenStall,
    choose: chooseStall,
  }
);
const timeline = makeTimeline(byId("timeline"), byId("timeline-words"), {
  show: chooseStall,
  brushed: chooseRange,
});
const flame = makeFlame(byId("flame"), byId("flame-words"), byId("matches"), {
  moved: () => {
    drawFlameButtons();
    writeAddress("zoom");
  },
});
const controls = makeControls(filters, changed);

function drawFlameButtons() {
  byId("unzoom").hidden = !flame.isZoomed;
  byId("only").hidden = !flame.current || flame.current.name < 0;
}

function show(stall) {
  chosenStall = stall;
  showDetail(byId("detail"), stall);
  timeline.select(stall);
  drawTimeline();
  stallList.draw();
}

// On a narrow screen the choice is above or below of what it opens.
function reveal() {
  if (matchMedia("(max-width: 1000px)").matches) byId("chosen").scrollIntoView({ block: "nearest" });
}

function chooseStall(stall) {
  show(stall);
  showView("detail");
  reveal();
  writeAddress("stall");
}

function showView(name) {
  view = name;
  const hasGroup = filters.group !== undefined;
  byId("views").hidden = !hasGroup;
  for (const each of ["group", "detail"]) {
    const isShown = each === (hasGroup ? view : "detail");
    byId("tab-" + each).setAttribute("aria-selected", String(isShown));
    byId(each).hidden = !isShown;
  }
}

function update(path = []) {
  const kept = allStalls.filter(filterTest(filters));
  const groups = groupsOf(kept);
  const chosen = kept.filter(inGroup(filters));
  groupList.set(groups);
  stallList.set(chosen);
  if (filters.group !== undefined) showGroup(byId("group"), chosen);
  showView(view);
  timeline.setRange(filters.range);
  timeline.set(chosen);
  drawTimeline();
  flame.set(mergedTree(chosen, byId("bottom-up").checked, byId("all-frames").checked), path, filters.search);
  drawFlameButtons();
  byId("tab-groups").querySelector(".count").textContent = number(groups.length);
  byId("tab-stalls").querySelector(".count").textContent = number(chosen.length);
  byId("all-times").hidden = filters.range === null;
  controls.draw(chosen);
  if (chosen.length === 0) {
    const searched = filters.search.trim();
    byId("detail").replaceChildren(element("p", { class: "empty" }, "No stall matches" + (searched === "" ? "." : " “" + searched + "”.")));
    drawChart = () => {};
  }
}

// The stall to open: in a comparison, of the new or worse stalls; else the worst. null without any.
function worstShown() {
  const [first] = groupList.items;
  if (!isComparison || first === undefined) return worstOf(stallList.items);
  const after = first.stalls.filter((stall) => stalls.side[stall] === 1);
  return longestOf(after.length > 0 ? after : first.stalls);
}

// A search opens the first group that it finds, or what it finds in the chosen one.
function changed(refines) {
  const wasEmpty = stallList.items.length === 0;
  update();
  const [first] = filters.group === undefined ? groupList.items.map((group) => group.longest) : [longestOf(stallList.items)];
  if (first !== undefined && first !== null && (refines === "search" || wasEmpty)) show(first);
  writeAddress(refines);
}

function writeAddress(refines) {
  const shown = {
    filters, stall: chosenStall, tab, isOfGroup: filters.group !== undefined && view === "group", isBottomUp: byId("bottom-up").checked, showsRuntimeFrames: byId("all-frames").checked,
    zoom: flame.path,
  };
  address.write(addressOf(shown), refines);
}

function restore(words) {
  const wanted = viewOf(words);
  Object.assign(filters, wanted.filters);
  byId("bottom-up").checked = wanted.isBottomUp;
  byId("all-frames").checked = wanted.showsRuntimeFrames;
  view = wanted.isOfGroup ? "group" : "detail";
  showTab(wanted.tab);
  update(wanted.zoom);
  const stall = wanted.stall === null ? worstShown() : wanted.stall;
  if (stall !== null) show(stall);
}

function showTab(name) {
  tab = name;
  for (const each of ["groups", "stalls"]) {
    byId("tab-" + each).setAttribute("aria-selected", String(each === name));
    byId(each).hidden = each !== name;
  }
  (name === "groups" ? groupList : stallList).draw();
}

// Lets only the stalls in a range of times through; null lets all.
function chooseRange(range) {
  filters.range = range;
  changed(null);
}

function chooseTab(name) {
  showTab(name);
  writeAddress(null);
}

function clearFilters() {
  Object.assign(filters, newFilters());
  timeline.reset();
  changed(null);
}

// Undoes one step: the search, else the zoom, else the time range, else the other filters.
function escape() {
  if (filters.search !== "" || document.activeElement === byId("search")) {
    filters.search = "";
    byId("search").blur();
    changed(null);
  } else if (flame.isZoomed) flame.zoomOut();
  else if (filters.range !== null) chooseRange(null);
  else clearFilters();
}

function onlyCurrent() {
  if (!flame.current || flame.current.name < 0) return;
  filters.functionName = functionName(flame.current);
  changed(null);
}

function fillHeader() {
  const total = timeOf(allStalls);
  const groups = groupsOf(allStalls);
  const count = groups.reduce((all, group) => all + group.count, 0);
  const longest = longestOf(allStalls);
  const greatest = groups.reduce((most, group) => Math.max(most, group.max), 0);
  const showGroups = () => chooseTab("groups");
  // What a click shows: all stalls, the groups, or the longest stall.
  const figures = [
    ["stalls", number(count), () => chooseTab("stalls")], ["stalled", duration(total), showGroups],
    ["longest", duration(greatest), () => chooseStall(longest)],
    ["groups", number(groups.length), showGroups],
  ];
  if (isComparison) {
    sideTimes(allStalls).forEach((time, side) => figures.push([["before", "after"][side], rateText(rate(time, side))]));
  }
  byId("totals").replaceChildren(
    ...figures.map(([name, value, onclick]) => element(
      "div", {}, element("dt", {}, name),
      element("dd", { id: "total-" + name }, onclick && stallCount > 0 ? element("button", { type: "button", onclick }, value) : value)
    ))
  );
  const programs = [...new Set(data.loops.map((loop) => loop.process))];
  const sides = data.sides.map((side) => side.name).join(" → ");
  byId("subtitle").textContent =
    (sides ? sides + " · " : "") + (programs.length > 3 ? programs.slice(0, 3).join(", ") + " and others" : programs.join(", ")) +
    " · " + timeText(0).slice(0, 19) + " to " + timeText(lastStart).slice(0, 19) + " UTC";
  document.title = "Stalls of " + programs.slice(0, 3).join(", ");
}

// Where loops are left out, a button says so and shows them all.
function setLoopsShown(isExpanded) {
  const button = byId("all-loops");
  button.setAttribute("aria-expanded", String(isExpanded));
  button.textContent = isExpanded ? "Show fewer loops" : "Show all " + timeline.laneCount + " loops";
  timeline.fold(!isExpanded);
  button.hidden = !isExpanded && timeline.hiddenLanes === 0;
}
const drawTimeline = () => setLoopsShown(byId("all-loops").getAttribute("aria-expanded") === "true");

byId("search").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  flame.next();
});
// As an address, #flame would be a view without filters.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  flame.focus();
});
byId("bottom-up").addEventListener("change", () => changed(null));
byId("all-frames").addEventListener("change", () => changed(null));
byId("unzoom").addEventListener("click", () => flame.zoomOut());
byId("only").addEventListener("click", onlyCurrent);
byId("clear").addEventListener("click", clearFilters);
byId("all-times").addEventListener("click", () => chooseRange(null));
byId("all-loops").addEventListener("click", () => setLoopsShown(byId("all-loops").getAttribute("aria-expanded") === "false"));
for (const name of ["groups", "stalls"]) byId("tab-" + name).addEventListener("click", () => chooseTab(name));
for (const name of ["group", "detail"]) {
  byId("tab-" + name).addEventListener("click", () => {
    showView(name);
    writeAddress(null);
  });
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (byId("help").open) byId("help").open = false;
    else escape();
    event.preventDefault();
    return;
  }
  const isTyping = event.target.matches("input[type=search], select, textarea");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const toggle = (id) => {
    byId(id).checked = !byId(id).checked;
    changed(null);
  };
  const actions = {
    "/": () => {
      byId("search").focus();
      byId("search").select();
    },
    g: () => {
      chooseTab("groups");
      groupList.focus();
    },
    r: () => {
      chooseTab("stalls");
      stallList.focus();
    },
    t: () => byId("timeline").focus(), f: () => flame.focus(), s: onlyCurrent, b: () => toggle("bottom-up"),
    a: () => toggle("all-frames"), n: () => flame.next(), c: () => { if (byId("copy")) byId("copy").click(); },
    "?": () => { byId("help").open = !byId("help").open; },
  };
  if (!(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
});

let isDrawing = false;
function redraw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    drawTimeline();
    flame.draw();
    drawChart();
    groupList.draw();
    stallList.draw();
  });
}
new ResizeObserver(redraw).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// So few need no half of a screen for their list.
document.body.classList.toggle("few", stallCount <= 5);
fillHeader();
restore(address.written);
address.follow(restore);

// The page's state, for tests and for the console.
window.stallwatch = {
  data, groups: () => groupsOf(allStalls), flame, timeline, filters, markdown: () => markdown(chosenStall),
  state: () => ({
    zoom: flame.zoom ? functionName(flame.zoom) : null, current: flame.current ? functionName(flame.current) : null,
    total: flame.root ? flame.root.total : 0, shown: flame.zoom ? flame.zoom.total : 0, stalls: stallList.items.length,
  }),
};
