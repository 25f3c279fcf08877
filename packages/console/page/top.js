/** The largest and busiest folders of keys. */
import { own } from "./api.js";
import { bytesText, countText, field, form, h, keyText, latin1, utf8 } from "./dom.js";

const ORDERS = { bytes: "Bytes", keys: "Keys", writes: "Writes" };

export async function show(root, { query, signal, guard }) {
  const prefix = h("input", { value: query.get("prefix") ?? "", size: 30 });
  const minutes = h(
    "select",
    {},
    [5, 15, 60].map((one) => h("option", { value: one }, `${one} min`)),
  );
  const result = h("div");
  let order = "bytes";
  let top;
  const draw = () => {
    const rows = top.folders.toSorted((a, b) => b[order] - a[order]);
    const head = Object.entries(ORDERS).map(([name, text]) =>
      h(
        "th",
        { class: "number", scope: "col", "aria-sort": name === order ? "descending" : undefined },
        h("button", { type: "button", class: "plain", onclick: () => sort(name) }, text),
      ),
    );
    const cells = (one) => [
      h(
        "td",
        { class: "number" },
        `${bytesText(one.bytes)} (${share(one.bytes, top.total.bytes)})`,
      ),
      h("td", { class: "number" }, countText(one.keys)),
      h("td", { class: "number" }, countText(one.writes)),
    ];
    result.replaceChildren(
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Prefix"), head)),
        h(
          "tbody",
          {},
          rows.map((one) => h("tr", {}, h("td", {}, link(atob(one.name))), cells(one))),
          top.others.keys > 0
            ? h("tr", {}, h("td", { class: "faint" }, "others"), cells(top.others))
            : undefined,
          h("tr", {}, h("td", {}, "together"), cells(top.total)),
        ),
      ),
      h(
        "p",
        { class: "faint" },
        `As of revision ${top.revision}. Bytes are those of keys and values. Writes are changes of `,
        "keys that exist, as far as they are not compacted.",
      ),
    );
  };
  const sort = (name) => {
    order = name;
    draw();
  };
  const link = (name) => {
    const text = utf8(name);
    const isHere = name === latin1(prefix.value);
    if (text === undefined || isHere)
      return h("span", {}, keyText(name), isHere ? " (in no folder)" : "");
    return h("a", { href: `#/top?${new URLSearchParams({ prefix: text })}` }, keyText(name));
  };
  const look = guard(async () => {
    result.replaceChildren(h("p", { class: "faint" }, "counting …"));
    const body = { prefix: btoa(latin1(prefix.value)), minutes: Number(minutes.value) };
    top = await own("top", body, signal);
    draw();
  });
  root.replaceChildren(
    form(
      {},
      look,
      field("Below", prefix),
      field("Writes of the last", minutes),
      h("button", {}, "Count"),
    ),
    result,
  );
  await look();
}

function share(part, whole) {
  return whole === 0 ? "0 %" : `${Math.round((100 * part) / whole)} %`;
}
