/** The last lines of this member's log, for root. */
import { own } from "./api.js";
import { field, form, h, keyText, latin1 } from "./dom.js";

/** Lines that are shown, as many as a member keeps. */
const MAX_LINES = 1000;
const RANK = { info: 0, warn: 1, error: 2 };

export function show(root, { every }) {
  const text = h("input", { size: 24 });
  const level = h(
    "select",
    {},
    Object.keys(RANK).map((name) => h("option", {}, name)),
  );
  const body = h("tbody");
  const lines = [];
  const draw = () => {
    const wanted = text.value.toLowerCase();
    const shown = lines.filter(
      (line) =>
        RANK[line.level] >= RANK[level.value] &&
        `${line.caller} ${line.msg} ${line.fields}`.toLowerCase().includes(wanted),
    );
    body.replaceChildren(...shown.toReversed().map(row));
  };
  text.addEventListener("input", draw);
  level.addEventListener("change", draw);
  root.replaceChildren(
    form({}, draw, field("Contains", text), field("From level", level)),
    h("table", { class: "log" }, body),
  );
  return every(2000, async () => {
    for (;;) {
      const { lines: added } = await own("log", { after: lines.at(-1)?.sequence ?? 0 });
      if (added.length === 0) return;
      lines.push(...added);
      lines.splice(0, Math.max(0, lines.length - MAX_LINES));
      draw();
    }
  });
}

function row({ wallMs, level, caller, msg, fields }) {
  const kind = level === "error" ? "bad" : level === "warn" ? "warn" : "faint";
  return h(
    "tr",
    {},
    h("td", { class: "faint" }, new Date(wallMs).toISOString().slice(11, 23)),
    h("td", { class: kind }, level),
    h("td", { class: "faint" }, caller),
    h("td", {}, msg, " ", fields === "{}" ? "" : keyText(latin1(fields))),
  );
}
