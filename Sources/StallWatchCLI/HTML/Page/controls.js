// The bar with the filters: what can be chosen, what is chosen, and how many stalls are left.

const byId = (id) => document.getElementById(id);

// changed(refines): the filters have changed; `refines` names a filter whose steps belong together.
function makeControls(filters, changed) {
  const search = byId("search");
  search.addEventListener("input", () => {
    filters.search = search.value;
    changed("search");
  });

  const selects = [
    makeSelect("loop", "all loops", choices((stall) => [data.loops[stalls.loop[stall]].label])),
    makeSelect("process", "all processes", choices((stall) => [data.loops[stalls.loop[stall]].process])),
    makeSelect("context", "all contexts", choices((stall) => (stalls.context[stall] === null ? [] : [text(stalls.context[stall])]))),
    makeSelect("metadata", "all metadata", choices((stall) => pairsOf(stalls.metadata[stall]).map(pairText))),
    makeSelect("minimum", "any duration", minimums(), (value) => "≥ " + duration(value)),
    makeSelect("side", "both sides", data.sides.map((_, side) => side), (side) => data.sides[side].name),
  ];

  function makeSelect(name, none, values, words = (value) => value) {
    const select = byId("filter-" + name);
    select.replaceChildren(
      element("option", { value: "" }, none), ...values.map((value, index) => element("option", { value: index }, words(value)))
    );
    select.hidden = values.length < (name === "minimum" ? 1 : 2);
    select.addEventListener("change", () => {
      filters[name] = select.value === "" ? null : values[Number(select.value)];
      changed(null);
    });
    return {
      draw() {
        let index = values.indexOf(filters[name]);
        // A link may have a value that is not among the first.
        if (index < 0 && filters[name]) {
          index = values.push(filters[name]) - 1;
          select.append(element("option", { value: index }, words(filters[name])));
          select.hidden = false;
        }
        select.value = index < 0 ? "" : String(index);
        select.classList.toggle("chosen", index >= 0);
      },
    };
  }

  function minimums() {
    const longest = stalls.duration.reduce((a, b) => Math.max(a, b), 0);
    const shortest = stalls.duration.reduce((a, b) => Math.min(a, b), longest);
    return [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60].map((seconds) => seconds * 1e6).filter((time) => shortest < time && time <= longest);
  }

  function chips() {
    const made = [];
    const chip = (id, words, remove) =>
      made.push(
        element(
          "button",
          { type: "button", class: "chip", id, "aria-label": "Remove the filter: " + words, onclick: () => { remove(); changed(null); } },
          words + "  ×"
        )
      );
    if (filters.group !== undefined) {
      const fingerprint = text(filters.group);
      chip(
        "chip-group", fingerprint === null ? "group without a fingerprint" : "group " + fingerprint.slice(0, 8),
        () => { filters.group = undefined; }
      );
    }
    if (filters.functionName !== null) {
      chip("chip-function", "in " + filters.functionName, () => { filters.functionName = null; });
    }
    if (filters.range !== null) {
      const [from, to] = filters.range.map((time) => timeText(time).slice(0, 19));
      const isOneDay = from.slice(0, 10) === to.slice(0, 10);
      chip("chip-time", from + " to " + to.slice(isOneDay ? 11 : 0), () => { filters.range = null; });
    }
    return made;
  }

  function drawCauses() {
    const times = tally(allStalls.map((stall) => [causeOf(stall), stalls.total[stall]]));
    const focused = document.activeElement && document.activeElement.dataset.cause;
    byId("causes").replaceChildren(
      ...[...times].sort((a, b) => b[1] - a[1]).map(([cause, time]) =>
        element(
          "button",
          {
            type: "button", "aria-pressed": String(filters.cause === cause), "data-cause": cause,
            title: "Only stalls with this cause, or all again",
            onclick: () => {
              filters.cause = filters.cause === cause ? null : cause;
              changed(null);
            },
          },
          causeLabel(cause), element("span", { class: "count" }, duration(time))
        )
      )
    );
    if (focused) byId("causes").querySelector('[data-cause="' + CSS.escape(focused) + '"]').focus();
  }

  return {
    draw(shown) {
      if (search.value !== filters.search) search.value = filters.search;
      for (const select of selects) select.draw();
      const isChip = document.activeElement && document.activeElement.classList.contains("chip");
      byId("chips").replaceChildren(...chips());
      // The button that had the focus is gone.
      if (isChip) search.focus();
      drawCauses();
      const isAll = shown.length === stallCount;
      byId("shown").textContent = isAll ? reportsText(allStalls)
        : number(shown.length) + " of " + counted(stallCount, "report", "reports") + ", " + duration(timeOf(shown)) + " of " +
          duration(timeOf(allStalls));
      byId("clear").hidden = isAll && byId("chips").childElementCount === 0 && filters.search === "";
    },
  };
}
