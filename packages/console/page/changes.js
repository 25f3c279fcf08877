/** The keys below a prefix that differ between two revisions, and the difference of each. */
import { get, own } from "./api.js";
import { diffLines } from "./diff.js";
import { bytesText, countText, h, keyText } from "./dom.js";
import { textOf } from "./values.js";

const KINDS = {
  added: ["+", "added"],
  changed: ["~", undefined],
  removed: ["−", "removed"],
};

function kindOf({ before, after }) {
  if (before === null) return "added";
  return after === null ? "removed" : "changed";
}

/**
 * The items of the tree for a difference.
 * @param prefix latin1
 * @param since revision that is compared with the one that is shown
 */
export async function changedItems(prefix, since, state) {
  const body = { prefix: btoa(prefix), from: since, to: state.at() };
  const { from, to, rows, ...counts } = await own("changes", body, state.signal);
  const total = counts.added + counts.changed + counts.removed;
  const left = total - rows.length;
  const words = Object.keys(KINDS).map((kind) => `${countText(counts[kind])} ${kind}`);
  return [
    h("li", { class: "faint" }, `From revision ${from} to ${to}: ${words.join(", ")}.`),
    ...rows.map((row) => item(prefix, row, from, to, state)),
    left > 0
      ? h("li", { class: "faint" }, `${countText(left)} more: give a longer prefix.`)
      : undefined,
  ].filter((one) => one !== undefined);
}

function item(prefix, row, from, to, state) {
  const key = atob(row.name);
  const [sign, kind] = KINDS[kindOf(row)];
  const sizes = [row.before, row.after].filter((size) => size !== null).map(bytesText);
  const onclick = state.guard(() => showDifference(key, from, to, state));
  return h(
    "li",
    { role: "treeitem" },
    h(
      "button",
      { type: "button", tabindex: -1, onclick },
      h("span", { class: kind }, `${sign} `),
      keyText(key.slice(prefix.length)),
      h("span", { class: "faint" }, sizes.join(" → ")),
    ),
  );
}

async function showDifference(key, from, to, { details, signal }) {
  const records = await Promise.all([from, to].map((revision) => get(key, revision, signal)));
  const [before, after] = await Promise.all(records.map(textOf));
  details.replaceChildren(
    h("h2", {}, keyText(key)),
    h("p", { class: "faint" }, `From revision ${from} to ${to}`),
    h("pre", { tabindex: 0 }, diffLines(before, after)),
  );
}
