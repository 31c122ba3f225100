// A list of any length: the page holds only the visible rows.

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  // Appends strings as text nodes, so that markup in them has no effect.
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

// Words after a dot of a colour.
const dotted = (colour, words) =>
  element("span", { class: "cause" }, element("span", { class: "dot", style: "background: " + colour }), words);
const causeLabel = (cause) => dotted(causeColour(cause), cause);

// columns: [{title, width, from, isNumber, cell(item) -> node or text, tip(item), compare(a, b)}]; a list narrower than `from`
// pixels leaves the column out. keyOf(item) tells items apart, and is the same for the same item of a later list.
function makeList(host, label, columns, { chosen, choose, rowHeight = 30, keyOf = (item) => item }) {
  let items = [];
  let current = 0;
  let sort = { column: columns.find((column) => column.isFirst), isReversed: false };
  const heads = columns.map((column) => element("button", {
    type: "button", class: column.isNumber ? "number" : "", "aria-pressed": "false",
    onclick: () => {
      sort = { column, isReversed: sort.column === column && !sort.isReversed };
      arrange();
    },
  }, column.title));
  const head = element("div", { class: "head" }, ...heads);
  const space = element("div");
  const rows = element("div", { class: "rows", tabindex: "0", role: "listbox", "aria-label": label }, space);
  host.append(head, rows);

  const keys = () => JSON.stringify(items.map(keyOf));
  const sortItems = () => items.sort((a, b) => sort.column.compare(a, b) * (sort.isReversed ? -1 : 1));

  function arrange() {
    sortItems();
    heads.forEach((button, index) => button.setAttribute("aria-pressed", String(columns[index] === sort.column)));
    current = 0;
    rows.scrollTop = 0;
    draw();
  }

  function draw() {
    const shown = columns.filter((column) => (column.from || 0) <= host.clientWidth);
    const template = shown.map((column) => column.width).join(" ");
    heads.forEach((button, index) => { button.hidden = !shown.includes(columns[index]); });
    head.style.gridTemplateColumns = template;
    const first = Math.max(Math.floor(rows.scrollTop / rowHeight) - 4, 0);
    const last = Math.min(Math.ceil((rows.scrollTop + rows.clientHeight) / rowHeight) + 4, items.length);
    space.style.height = items.length * rowHeight + "px";
    // The columns' titles leave as much room at the right as the rows' scroll bar takes.
    head.style.paddingRight = 14 + rows.offsetWidth - rows.clientWidth + "px";
    const made = [];
    for (let index = first; index < last; index += 1) {
      made.push(element(
        "div",
        {
          class: "row" + (index === current ? " current" : ""), role: "option", id: host.id + "-" + index,
          "aria-selected": String(chosen(items[index])), "aria-posinset": index + 1, "aria-setsize": items.length,
          style: "top: " + index * rowHeight + "px; height: " + rowHeight + "px; grid-template-columns: " + template,
          onclick: () => {
            current = index;
            choose(items[index]);
          },
        },
        ...shown.map((column) => {
          const cell = element("span", { class: column.class || (column.isNumber ? "number" : "") }, column.cell(items[index]));
          cell.title = column.tip ? column.tip(items[index]) : cell.textContent;
          return cell;
        })
      ));
    }
    if (items.length === 0) made.push(element("p", { class: "empty" }, "No stall matches."));
    space.replaceChildren(...made);
    rows.setAttribute("aria-activedescendant", items.length > 0 ? host.id + "-" + current : "");
  }

  function move(to) {
    current = Math.min(Math.max(to, 0), items.length - 1);
    const top = current * rowHeight;
    if (top < rows.scrollTop) rows.scrollTop = top;
    if (top + rowHeight > rows.scrollTop + rows.clientHeight) rows.scrollTop = top + rowHeight - rows.clientHeight;
    draw();
  }

  rows.addEventListener("scroll", draw);
  rows.addEventListener("keydown", (event) => {
    const page = Math.max(Math.floor(rows.clientHeight / rowHeight) - 1, 1);
    const moves = {
      ArrowDown: current + 1, ArrowUp: current - 1, PageDown: current + page, PageUp: current - page, Home: 0,
      End: items.length - 1,
    };
    if (items.length === 0) return;
    if (event.key in moves) move(moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") choose(items[current]);
    else return;
    event.preventDefault();
  });

  return {
    // The same items again, as after a choice among them, leave the list where it is.
    set(list) {
      const before = keys();
      items = list;
      sortItems();
      if (keys() === before) draw();
      else arrange();
    },
    draw,
    focus: () => rows.focus(),
    get items() { return items; },
  };
}
