/**
 * A flame picture: one HTML file that needs nothing else. Width is time, the caller stands below
 * what it calls; a click zooms.
 */
import { escapeHtml } from "@quorate/proto";
import type { Frame } from "./cpu-profile.ts";

/** Frames narrower than this share of the whole are left out. */
const leastShare = 1 / 5000;

/** The picture under a heading. */
export function flameHtml(heading: string, tree: Frame): string {
  const least = tree.totalMs * leastShare;
  const slim = (frame: Frame): object => [
    frame.name,
    Number(frame.totalMs.toFixed(2)),
    Number(frame.selfMs.toFixed(2)),
    frame.children.filter((child) => child.totalMs >= least).map(slim),
  ];
  // "<" would let a function's name end the script.
  const data = JSON.stringify(slim(tree)).replaceAll("<", "\\u003c");
  return page.replaceAll("TITLE", () => escapeHtml(heading)).replace("DATA", () => data);
}

const page = `<!doctype html>
<meta charset="utf-8">
<title>TITLE</title>
<style>
  body { font: 13px system-ui, sans-serif; margin: 12px }
  #flame { position: relative; overflow: hidden }
  #flame div { position: absolute; height: 17px; overflow: hidden; white-space: nowrap; box-sizing: border-box;
    border: 1px solid #fff; border-radius: 3px; padding: 0 3px; cursor: pointer; font: 11px/15px monospace }
  #says { min-height: 1.5em; font-family: monospace }
</style>
<h3>TITLE</h3>
<p>Click zooms, a click on what lies below zooms out. <input id="find" placeholder="mark functions by name"> <span id="marked"></span></p>
<p id="says"></p>
<div id="flame"></div>
<script>
const tree = DATA;
const flame = document.getElementById("flame"), says = document.getElementById("says"), find = document.getElementById("find");
const hue = (name) => [...name.replace(/:\\d+$/, "")].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 997, 0) % 60;
const depthOf = (frame) => 1 + Math.max(0, ...frame[3].map(depthOf));
let zoomed = [tree];
function draw() {
  const width = flame.clientWidth, last = zoomed[zoomed.length - 1], height = (zoomed.length - 1 + depthOf(last)) * 17;
  const wanted = find.value.toLowerCase();
  let markedMs = 0;
  flame.style.height = height + "px";
  flame.replaceChildren();
  const put = (frame, path, level, left, wide, within) => {
    const isMarked = wanted !== "" && frame[0].toLowerCase().includes(wanted);
    if (isMarked && !within) markedMs += frame[1];
    if (wide >= 1) {
      const box = document.createElement("div");
      box.style.cssText = "left:" + left + "px;width:" + wide + "px;top:" + (height - (level + 1) * 17) + "px;background:" +
        (isMarked ? "#b48cff" : "hsl(" + hue(frame[0]) + " 90% 70%)");
      if (wide > 30) box.textContent = frame[0];
      const words = frame[0] + ": " + frame[1] + " ms (" + (100 * frame[1] / tree[1]).toFixed(1) + " %), itself " + frame[2] + " ms";
      box.title = words;
      box.onmouseenter = () => { says.textContent = words };
      box.onclick = () => { zoomed = path; draw() };
      flame.append(box);
    }
    return isMarked || within;
  };
  const rise = (frame, path, level, left, wide, within) => {
    const inside = put(frame, path, level, left, wide, within);
    let at = left;
    for (const child of frame[3]) {
      const childWide = wide * child[1] / frame[1];
      rise(child, [...path, child], level + 1, at, childWide, inside);
      at += childWide;
    }
  };
  zoomed.slice(0, -1).forEach((frame, level) => put(frame, zoomed.slice(0, level + 1), level, 0, width, true));
  rise(last, zoomed, zoomed.length - 1, 0, width, false);
  document.getElementById("marked").textContent = wanted === "" ? "" : (100 * markedMs / last[1]).toFixed(1) + " % of what is shown";
}
find.oninput = draw;
onresize = draw;
draw();
</script>
`;
