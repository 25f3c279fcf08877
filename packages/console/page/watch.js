/** A live watch of a key or prefix. */
import { endOf, eventOf, stream } from "./api.js";
import { bytesText, field, form, h, keyText, latin1, utf8 } from "./dom.js";
import { keyAddress } from "./keys.js";

/** Events that are shown; beyond, the oldest goes. */
const MAX_EVENTS = 500;
const MAX_PREVIEW_CHARS = 120;

export function show(root, { query, signal, guard }) {
  const key = h("input", { name: "key", value: query.get("prefix") ?? "", size: 30 });
  const isPrefix = h("input", { type: "checkbox", checked: true });
  const from = h("input", { inputmode: "numeric", pattern: "[0-9]*", size: 8, placeholder: "now" });
  const button = h("button", {}, "Watch");
  const state = h("p", { class: "faint", role: "status" });
  const body = h("tbody");
  const pause = h("input", { type: "checkbox" });
  let watching;

  const start = guard(async () => {
    watching?.abort();
    watching = new AbortController();
    const mine = watching;
    signal.addEventListener("abort", () => mine.abort());
    body.replaceChildren();
    const name = latin1(key.value);
    const isRange = isPrefix.checked || name === "";
    const create = {
      key: btoa(name || "\0"),
      ...(isRange ? { range_end: btoa(endOf(name)) } : {}),
      ...(from.value === "" ? {} : { start_revision: from.value }),
      prev_kv: false,
    };
    state.textContent = "connecting …";
    button.textContent = "Stop";
    let count = 0;
    try {
      for await (const one of stream("/v3/watch", { create_request: create }, mine.signal)) {
        if (one.canceled)
          throw new Error(one.cancel_reason || `compacted up to ${one.compact_revision}`);
        if (pause.checked) continue;
        const events = (one.events ?? []).map(eventOf);
        count += events.length;
        body.prepend(...events.slice(-MAX_EVENTS).reverse().map(row));
        while (body.children.length > MAX_EVENTS) body.lastChild.remove();
        state.textContent = `watching; ${count} events`;
      }
      state.textContent = "the member ended the watch";
    } finally {
      if (watching === mine) {
        watching = undefined;
        button.textContent = "Watch";
        if (mine.signal.aborted) state.textContent = `stopped; ${count} events`;
      }
    }
  });
  root.replaceChildren(
    form(
      {},
      () => (watching === undefined ? start() : watching.abort()),
      field("Key", key),
      field("Prefix", isPrefix),
      field("From revision", from),
      button,
      field("Pause", pause),
    ),
    state,
    h("table", {}, body),
  );
}

function row({ type, key, value, revision, version }) {
  const text = utf8(value.slice(0, MAX_PREVIEW_CHARS));
  return h(
    "tr",
    {},
    h("td", { class: "number" }, revision),
    h("td", { class: type === "DELETE" ? "removed" : version === 1 ? "added" : "" }, type),
    h("td", {}, h("a", { href: keyAddress(key) }, keyText(key))),
    h(
      "td",
      {},
      type === "DELETE"
        ? ""
        : text === undefined
          ? bytesText(value.length)
          : keyText(value.slice(0, MAX_PREVIEW_CHARS)),
    ),
  );
}
