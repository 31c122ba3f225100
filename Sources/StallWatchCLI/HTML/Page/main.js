// The page's state (search, filters, selection) and the parts that show it.

const byId = (id) => document.getElementById(id);
const allStalls = Array.from({ length: stallCount }, (_, index) => index);
const filters = { group: undefined, hiddenCauses: new Set(), range: null };
let chosenStall = null;

const inRange = (stall) =>
  !filters.hiddenCauses.has(causeOf(stall)) &&
  (filters.range === null ||
    (stalls.start[stall] <= filters.range[1] && stalls.start[stall] + stalls.duration[stall] >= filters.range[0]));
const inGroup = (stall) => filters.group === undefined || stalls.fingerprint[stall] === filters.group;
const timeOf = (indices) => indices.reduce((all, stall) => all + stalls.duration[stall], 0);

const by = (value) => (a, b) => value(b) - value(a);
const byName = (value) => (a, b) => (value(a) || "").localeCompare(value(b) || "");
const figure = (title, value, width = "62px") => ({
  title, width, isNumber: true, cell: (group) => duration(value(group)), compare: by(value), isFirst: title === "total",
});
const groupList = makeList(
  byId("groups"), "Groups",
  [
    { title: "count", width: "46px", isNumber: true, cell: (group) => number(group.count), compare: by((group) => group.count) },
    figure("total", (group) => group.total, "84px"), figure("p50", (group) => group.p50), figure("p95", (group) => group.p95),
    figure("max", (group) => group.max),
    { title: "cause", width: "84px", cell: (group) => causeLabel(group.cause), compare: byName((group) => group.cause) },
    {
      title: "culprit", width: "minmax(80px, 1fr)", class: "name", cell: (group) => group.culprit || "—",
      compare: byName((group) => group.culprit),
    },
    {
      title: "loop", width: "70px", class: "faint", compare: byName((group) => group.loop),
      cell: (group) => group.loop + (group.loops > 1 ? " +" + (group.loops - 1) : ""),
    },
  ],
  {
    chosen: (group) => filters.group === group.key,
    choose: (group) => {
      filters.group = filters.group === group.key ? undefined : group.key;
      if (filters.group !== undefined) show(group.longest);
      update();
    },
  }
);
const stallList = makeList(
  byId("stalls"), "Reports",
  [
    {
      title: "began", width: "172px", class: "faint", cell: (stall) => timeText(stalls.start[stall]).slice(0, 23),
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
      title: "loop", width: "70px", class: "faint", cell: (stall) => data.loops[stalls.loop[stall]].label,
      compare: byName((stall) => data.loops[stalls.loop[stall]].label),
    },
  ],
  { chosen: (stall) => stall === chosenStall, choose: (stall) => show(stall) }
);
const timeline = makeTimeline(byId("timeline"), byId("timeline-words"), {
  show: (stall) => show(stall),
  // Returns the selected time range; with an argument, selects it.
  range: (wanted) => {
    if (wanted) {
      filters.range = wanted;
      update();
    }
    return filters.range;
  },
});
const flame = makeFlame(byId("flame"), byId("flame-words"), byId("matches"), {
  zoomed: (isZoomed) => { byId("unzoom").hidden = !isZoomed; },
});

function show(stall) {
  chosenStall = stall;
  showDetail(byId("detail"), stall);
  timeline.select(stall);
  stallList.draw();
}

function update() {
  const kept = allStalls.filter(inRange);
  const groups = groupsOf(kept);
  const chosen = kept.filter(inGroup);
  groupList.set(groups);
  stallList.set(chosen);
  timeline.set(chosen);
  flame.set(mergedTree(chosen, byId("bottom-up").checked, byId("plumbing").checked));
  byId("tab-groups").querySelector(".count").textContent = number(groups.length);
  byId("tab-stalls").querySelector(".count").textContent = number(chosen.length);
  byId("timeline-words").textContent = chosen.length === stallCount ? ""
    : counted(chosen.length, "stall", "stalls") + " of " + number(stallCount) + ", " + duration(timeOf(chosen)) + " of " +
      duration(timeOf(allStalls));
  byId("clear").hidden = chosen.length === stallCount;
  drawCauses();
}

function drawCauses() {
  const times = new Map();
  for (const stall of allStalls) times.set(causeOf(stall), (times.get(causeOf(stall)) || 0) + stalls.duration[stall]);
  const focused = document.activeElement && document.activeElement.dataset.cause;
  byId("causes").replaceChildren(
    ...[...times].sort((a, b) => b[1] - a[1]).map(([cause, time]) =>
      element(
        "button",
        {
          type: "button", "aria-pressed": String(!filters.hiddenCauses.has(cause)), "data-cause": cause,
          title: "Show or hide stalls with this cause",
          onclick: () => {
            if (!filters.hiddenCauses.delete(cause)) filters.hiddenCauses.add(cause);
            update();
          },
        },
        causeLabel(cause), element("span", { class: "count" }, duration(time))
      )
    )
  );
  if (focused) byId("causes").querySelector('[data-cause="' + CSS.escape(focused) + '"]').focus();
}

function showTab(name) {
  for (const tab of ["groups", "stalls"]) {
    byId("tab-" + tab).setAttribute("aria-selected", String(tab === name));
    byId(tab).hidden = tab !== name;
  }
  (name === "groups" ? groupList : stallList).draw();
}

function clearFilters() {
  filters.group = undefined;
  filters.range = null;
  filters.hiddenCauses.clear();
  timeline.reset();
  update();
}

// Undoes one step: the search, else the zoom, else the filters.
function escape() {
  if (byId("search").value !== "") {
    byId("search").value = "";
    flame.search("");
  } else if (flame.isZoomed) flame.zoomOut();
  else clearFilters();
}

function fillHeader() {
  const total = timeOf(allStalls);
  const groups = groupsOf(allStalls);
  const count = groups.reduce((all, group) => all + group.count, 0);
  const figures = [
    ["stalls", number(count)], ["stalled", duration(total)],
    ["longest", duration(stalls.duration.reduce((a, b) => Math.max(a, b), 0))], ["groups", number(groups.length)],
  ];
  byId("totals").replaceChildren(
    ...figures.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", { id: "total-" + name }, value)))
  );
  const starts = stalls.start;
  const last = starts.reduce((a, b) => Math.max(a, b), 0);
  const programs = [...new Set(data.loops.map((loop) => loop.process))];
  byId("subtitle").textContent =
    (programs.length > 3 ? programs.slice(0, 3).join(", ") + " and others" : programs.join(", ")) + " · " +
    timeText(0).slice(0, 19) + " to " + timeText(last).slice(0, 19) + " UTC";
  document.title = "Stalls of " + programs.slice(0, 3).join(", ");
}

byId("search").addEventListener("input", (event) => flame.search(event.target.value));
byId("search").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  flame.next();
});
byId("bottom-up").addEventListener("change", update);
byId("plumbing").addEventListener("change", update);
byId("unzoom").addEventListener("click", () => flame.zoomOut());
byId("clear").addEventListener("click", clearFilters);
for (const name of ["groups", "stalls"]) byId("tab-" + name).addEventListener("click", () => showTab(name));

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (byId("help").open) byId("help").open = false;
    else escape();
    event.preventDefault();
    return;
  }
  const isTyping = event.target instanceof HTMLInputElement && event.target.type === "search";
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const toggle = (id) => {
    byId(id).checked = !byId(id).checked;
    update();
  };
  const actions = {
    "/": () => {
      byId("search").focus();
      byId("search").select();
    },
    g: () => {
      showTab("groups");
      groupList.focus();
    },
    r: () => {
      showTab("stalls");
      stallList.focus();
    },
    t: () => byId("timeline").focus(), f: () => flame.focus(), b: () => toggle("bottom-up"), p: () => toggle("plumbing"),
    n: () => flame.next(), "?": () => { byId("help").open = !byId("help").open; },
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
    timeline.draw();
    flame.draw();
    groupList.draw();
    stallList.draw();
  });
}
new ResizeObserver(redraw).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

fillHeader();
showTab("groups");
update();
if (groupList.items.length > 0) show(groupList.items[0].longest);

// The page's state, for tests and for the console.
window.stallwatch = {
  data, groups: () => groupsOf(allStalls), flame, filters,
  state: () => ({
    zoom: flame.zoom ? functionName(flame.zoom) : null, current: flame.current ? functionName(flame.current) : null,
    total: flame.root ? flame.root.total : 0, shown: flame.zoom ? flame.zoom.total : 0, stalls: stallList.items.length,
  }),
};
