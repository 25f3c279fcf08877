/** Rates and latencies of the last hour, drawn. */
import { own } from "./api.js";
import { bytesText, countText, h, msText, s } from "./dom.js";

const [WIDTH, HEIGHT] = [420, 150];
const MARGIN = { left: 58, right: 8, top: 8, bottom: 20 };

const rateText = (value) => `${value < 10 ? value.toFixed(1) : countText(Math.round(value))}/s`;
const numberText = (value) => countText(value < 10 ? Number(value.toFixed(1)) : Math.round(value));
const trafficText = (value) => `${bytesText(value)}/s`;

/** Title, text of a value, and lines: [column, name]. */
const CHARTS = [
  [
    "Requests",
    rateText,
    [
      ["reads", "reads"],
      ["writes", "writes"],
      ["others", "others"],
      ["errors", "errors"],
    ],
  ],
  [
    "Latency of reads",
    msText,
    [
      ["readP50", "median"],
      ["readP99", "99 %"],
    ],
  ],
  [
    "Latency of writes",
    msText,
    [
      ["writeP50", "median"],
      ["writeP99", "99 %"],
    ],
  ],
  [
    "Disk (99 %)",
    msText,
    [
      ["syncP99", "sync of the log"],
      ["commitP99", "commit of the store"],
    ],
  ],
  [
    "Traffic of clients",
    trafficText,
    [
      ["receivedBytes", "received"],
      ["sentBytes", "sent"],
    ],
  ],
  ["Events to watchers", rateText, [["events", "events"]]],
  [
    "Store",
    bytesText,
    [
      ["sizeBytes", "size"],
      ["inUseBytes", "in use"],
    ],
  ],
  ["Keys", numberText, [["keys", "keys"]]],
  [
    "Proposals and watchers",
    numberText,
    [
      ["pending", "pending proposals"],
      ["watchers", "watchers"],
    ],
  ],
];

export function show(root, { every }) {
  return every(5000, async () => {
    const { columns, samples, sampleMs, maxSamples } = await own("rates");
    const spanMs = sampleMs * maxSamples;
    const end = samples.at(-1)?.wallMs ?? 0;
    const begin = Math.max(end - spanMs, Math.min(samples[0]?.wallMs ?? end, end - 60_000));
    root.replaceChildren(
      h(
        "div",
        { class: "charts" },
        CHARTS.map(([title, text, lines]) => {
          const series = lines.map(([column, name]) => {
            const place = columns.indexOf(column);
            const points = samples.map(({ wallMs, values }) => [wallMs, values[place]]);
            return { name, points };
          });
          return chart(title, text, series, begin, end);
        }),
      ),
      h("p", { class: "faint" }, "Of this member, since its start, for an hour at the most."),
    );
  });
}

function chart(title, text, series, begin, end) {
  const most = Math.max(...series.flatMap(({ points }) => points.map(([, value]) => value ?? 0)));
  const high = niceAbove(most);
  const x = (ms) =>
    MARGIN.left + ((ms - begin) / Math.max(1, end - begin)) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value) =>
    HEIGHT - MARGIN.bottom - (value / high) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const grid = [0, high / 2, high].map((value) => [
    s("line", {
      class: "grid",
      x1: MARGIN.left,
      x2: WIDTH - MARGIN.right,
      y1: y(value),
      y2: y(value),
    }),
    s("text", { x: MARGIN.left - 4, y: y(value) + 4, "text-anchor": "end" }, text(value)),
  ]);
  const clock = (ms) => new Date(ms).toTimeString().slice(0, 5);
  const lines = series.flatMap(({ points }, i) =>
    unbroken(points).map((part) =>
      s("polyline", {
        class: `line-${i}`,
        points: part.map(([ms, value]) => `${x(ms).toFixed(1)},${y(value).toFixed(1)}`).join(" "),
      }),
    ),
  );
  const legend = series.map(({ name, points }, i) => {
    const newest = points.findLast(([, value]) => value !== null)?.[1];
    return h(
      "span",
      { class: `line-${i}` },
      `${name} ${newest === undefined ? "–" : text(newest)}`,
    );
  });
  return h(
    "figure",
    {},
    h("figcaption", {}, h("strong", {}, title), legend),
    s(
      "svg",
      { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title },
      grid,
      s("text", { x: MARGIN.left, y: HEIGHT - 4 }, clock(begin)),
      s("text", { x: WIDTH - MARGIN.right, y: HEIGHT - 4, "text-anchor": "end" }, clock(end)),
      lines,
    ),
  );
}

/** The parts of a line where something was measured; one point alone becomes a short line. */
function unbroken(points) {
  const parts = [[]];
  for (const [ms, value] of points) {
    if (value === null || value === undefined) parts.push([]);
    else parts.at(-1).push([ms, value]);
  }
  return parts
    .filter((part) => part.length > 0)
    .map((part) => (part.length > 1 ? part : [[part[0][0] - 5000, part[0][1]], part[0]]));
}

/** 1, 2 or 5 times a power of ten, not less than the value. */
function niceAbove(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value);
}
