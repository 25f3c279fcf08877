/** The difference of two texts, line by line. */
import { h } from "./dom.js";

/** Lines of each text that are compared, after equal ones at both ends are left out. */
const MAX_LINES = 2000;

const KINDS = { "+": "added", "-": "removed" };

/** The same as elements, a line each. */
export function diffLines(before, after) {
  return lineDiff(before, after).map(([kind, line]) =>
    h("div", { class: KINDS[kind] }, `${kind} ${line}`),
  );
}

/**
 * Lines with what became of them: [" " | "-" | "+", line]. Texts with more lines that differ than
 * MAX_LINES are all removed and all added.
 */
export function lineDiff(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const same = (lines) => lines.map((line) => [" ", line]);
  return [
    ...same(a.slice(0, head)),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...same(a.slice(a.length - tail)),
  ];
}

function middle(a, b) {
  if (a.length > MAX_LINES || b.length > MAX_LINES)
    return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  // lengths[i][j]: of the longest common part of a from i and b from j.
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
  const result = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      result.push([" ", a[i++]]);
      j++;
    } else if (
      j === b.length ||
      (i < a.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])
    )
      result.push(["-", a[i++]]);
    else result.push(["+", b[j++]]);
  }
  return result;
}
