// One stall as Markdown for an issue or a comment, and the clipboard.

// As in `stallwatch show --markdown`, so that a comment stays readable.
const maximumMarkdownLines = 60;

function markdown(stall) {
  // In prose, signs with a meaning are escaped; in code, a fence longer than any in the text ends it.
  // As in the tool, no address or name becomes a link: after @ stands a word joiner, which is not seen.
  const plain = (words) => words.replace(/[\r\n]+/g, " ")
    .replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
  const prose = (words) => plain(words).replace(/[\\`*_{}[\]<>#|~!$&]/g, "\\$&").replace(/:\//g, ":\\/")
    .replace(/(www)\./gi, "$1\\.").replace(/@/g, "@\u2060");
  const code = (words) => {
    const line = plain(words);
    const ticks = "`".repeat(Math.max(0, ...(line.match(/`+/g) || []).map((run) => run.length)) + 1);
    return ticks.length > 1 ? ticks + " " + line + " " + ticks : ticks + line + ticks;
  };
  const cell = (words) => (words.includes("\\|") ? prose(words) : code(words).replace(/\|/g, "\\|"));
  const lines = ["### " + prose(sentence(stall)), ""];
  const summary = text(stalls.summary[stall]);
  if (summary !== null) {
    const confidence = text(stalls.confidence[stall]);
    lines.push("**" + prose(causeOf(stall)) + "**" + (confidence === null ? "" : " (" + prose(confidence) + ")") + ": " + prose(summary), "");
    const advice = text(stalls.advice[stall]);
    if (advice !== null) lines.push("**Try:** " + prose(advice) + " See " + code(text(stalls.advicePage[stall])) + ".", "");
  }
  if (stalls.unknown[stall] !== null) lines.push(prose(text(stalls.unknown[stall])), "");
  lines.push("|  |  |", "| --- | --- |");
  if (stalls.place[stall] !== null) lines.push("| where | " + cell(text(stalls.place[stall])) + " |");
  lines.push("| time | " + timeParts(stall).map(([name, time]) => name + " " + duration(time)).join(", ") + " |");
  for (const [name, value] of factsOf(stall)) if (name !== "confidence") lines.push("| " + prose(name) + " | " + cell(value) + " |");
  lines.push("");
  const lock = data.locks[stall];
  if (lock) {
    lines.push("**" + (lock.isDeadlock ? "Deadlock" : "Lock") + "**: " + prose(lockTitle(lock)));
    lines.push(...lock.owners.slice(0, 5).map((owner) => "- " + prose(ownerText(owner))), "");
  }
  const clauses = data.peers[stall] || [];
  if (clauses.length > 0) lines.push("**Waits for**:", ...clauses.slice(0, 5).map((clause) => "- " + prose(clause)), "");
  const [heaviestStack] = stacksByTime(stall);
  if (heaviestStack) {
    const [node, time] = heaviestStack;
    const kernel = linesOf(stalls.kernel[stall]).map((name) => name + "  (kernel)");
    const frames = framesOf(node).filter((frame) => !data.functions.isRuntimeFrame[data.frames.function[frame]]);
    const words = frames.map((frame) => text(data.functions.name[data.frames.function[frame]]) + "  " + placeOf(frame)[0]);
    const all = [...kernel, ...words].map((line) => plain(line).trimEnd());
    const fence = "`".repeat(Math.max(3, ...all.flatMap((line) => line.match(/`+/g) || []).map((run) => run.length + 1)));
    // Two lines are the fences, one the title, one says how many are left out.
    const room = Math.max(maximumMarkdownLines - lines.length - 4, 1);
    lines.push(fence + "text", "Stack of " + duration(time) + " of " + duration(stalls.duration[stall]), ...all.slice(0, room));
    if (all.length > room) lines.push("… and " + counted(all.length - room, "caller", "callers"));
    lines.push(fence);
  }
  return lines.join("\n") + "\n";
}

// Copies a text and says so on the button. Where the browser refuses, the text is shown selected, to be copied by hand.
async function copyText(words, button) {
  try {
    await navigator.clipboard.writeText(words);
    button.textContent = "Copied";
  } catch {
    const area = element("textarea", { readonly: true, rows: "10", "aria-label": "Markdown" });
    area.value = words;
    button.closest(".title").after(area);
    area.select();
    button.textContent = "Press Ctrl+C";
  }
}
