// What is shown as the part of the page's address after #, so that a view can be linked and Back works.

// view: {filters, stall, tab, isOfGroup, isBottomUp, showsRuntimeFrames, zoom}; zoom is the path of child numbers from the root.
function addressOf(view) {
  const { filters } = view;
  const words = new URLSearchParams();
  const add = (name, value) => { if (value !== null && value !== undefined && value !== "") words.set(name, String(value)); };
  add("q", filters.search.trim());
  add("loop", filters.loop);
  add("process", filters.process);
  add("context", filters.context);
  add("metadata", filters.metadata);
  if (filters.minimum > 0) add("min", filters.minimum / 1000);
  add("side", filters.side);
  add("cause", filters.cause);
  if (filters.group !== undefined) words.set("group", text(filters.group) || "");
  add("function", filters.functionName);
  if (filters.range !== null) add("time", filters.range.map((time) => Math.round(data.begin + time)).join(","));
  add("stall", view.stall === null ? null : data.ids[view.stall]);
  if (view.isOfGroup) add("view", "group");
  if (view.tab !== "groups") add("list", view.tab);
  if (view.isBottomUp) add("up", 1);
  if (view.showsRuntimeFrames) add("frames", "all");
  add("zoom", view.zoom.join("."));
  return words.toString();
}

// The view of an address. What the page does not have is left out: a link may be to another page, or made by hand.
function viewOf(address) {
  const words = new URLSearchParams(address);
  const filters = newFilters();
  const whole = (value) => (/^\d{1,16}$/.test(value || "") ? Number(value) : null);
  const known = (value, list) => (value !== null && list.includes(value) ? value : null);
  filters.search = words.get("q") || "";
  filters.loop = known(words.get("loop"), data.loops.map((loop) => loop.label));
  filters.process = known(words.get("process"), data.loops.map((loop) => loop.process));
  filters.context = known(words.get("context"), stalls.context.map(text));
  filters.metadata = known(words.get("metadata"), data.metadata.flatMap((_, set) => pairsOf(set).map(pairText)));
  filters.minimum = (whole(words.get("min")) || 0) * 1000 || null;
  filters.side = known(whole(words.get("side")), data.sides.map((_, side) => side));
  filters.cause = known(words.get("cause"), allStalls.map(causeOf));
  if (words.has("group")) {
    const key = words.get("group") === "" ? null : data.strings.indexOf(words.get("group"));
    if (stalls.fingerprint.includes(key)) filters.group = key;
  }
  const name = data.strings.indexOf(words.get("function"));
  if (data.functions.name.includes(name)) filters.functionName = text(name);
  const times = (words.get("time") || "").split(",").map(Number);
  if (times.length === 2 && times.every(Number.isSafeInteger) && times[0] < times[1]) {
    filters.range = times.map((time) => time - data.begin);
  }
  const stall = data.ids.indexOf(words.get("stall"));
  const zoom = words.get("zoom") || "";
  return {
    filters, stall: stall < 0 ? null : stall, tab: words.get("list") === "stalls" ? "stalls" : "groups",
    isOfGroup: words.get("view") === "group",
    isBottomUp: words.get("up") === "1", showsRuntimeFrames: words.get("frames") === "all",
    zoom: /^\d+(\.\d+)*$/.test(zoom) ? zoom.split(".").map(Number) : [],
  };
}

// A step that refines the one before it (a letter of the search) takes its place, so that Back leaves it in one step.
const address = {
  written: location.hash.slice(1),
  refined: null,
  write(words, refines) {
    if (words === this.written) return;
    const replaces = refines !== null && refines === this.refined;
    this.written = words;
    this.refined = refines;
    if (replaces) location.replace("#" + words);
    else location.hash = words;
  },
  // Calls `changed` with each address that is not from `write`: Back, Forward, or a link.
  follow(changed) {
    window.addEventListener("hashchange", () => {
      const words = location.hash.slice(1);
      if (words === this.written) return;
      this.written = words;
      this.refined = null;
      changed(words);
    });
  },
};
