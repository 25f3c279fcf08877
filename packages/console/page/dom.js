/** Elements, texts and figures. All text is set as text: nothing here reads markup. */

/**
 * Makes an element. Properties that begin with "on" are listeners; `class` and all others are
 * attributes, of which those that are undefined or false are left out.
 */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(2).filter((child) => child !== undefined && child !== null));
  return element;
}

/** A table whose rows are cards on small screens. Columns: [title, class]; cells: node or text. */
export function table(columns, rows) {
  const heads = columns.map(([title, kind]) => h("th", { class: kind, scope: "col" }, title));
  return h(
    "table",
    { class: "cards" },
    h("thead", {}, h("tr", {}, heads)),
    h(
      "tbody",
      {},
      rows.map((row) =>
        h(
          "tr",
          {},
          row.map((cell, i) =>
            h("td", { class: columns[i][1], "data-label": columns[i][0] }, cell ?? ""),
          ),
        ),
      ),
    ),
  );
}

/** A field of a form with its label. */
export function field(text, input) {
  return h("label", { class: input.type === "checkbox" ? "check" : undefined }, text, input);
}

/** A form that calls `submit` with itself. */
export function form(properties, submit, ...children) {
  const onsubmit = (event) => {
    event.preventDefault();
    submit(event.target);
  };
  return h("form", { ...properties, onsubmit }, ...children);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Bytes for people. */
export function bytesText(count) {
  if (count === undefined || count === null) return "–";
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Milliseconds for people. */
export function msText(ms) {
  if (ms === undefined || ms === null) return "–";
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : spanText(ms);
}

/** A span of time in its largest unit, or two. */
export function spanText(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** A count for people. */
export function countText(count) {
  return count === undefined || count === null ? "–" : Number(count).toLocaleString("en");
}

/** What a screen shows other than as itself: controls, marks of direction, what has no width. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u;
/** Characters of a key that are shown. */
const MAX_SHOWN_CHARS = 300;

/**
 * A key, or another foreign name, as an element: characters that cannot be seen, and bytes that are
 * no UTF-8, are shown by their numbers.
 * @param key latin1, one character a byte
 */
export function keyText(key) {
  const cut = key.length > MAX_SHOWN_CHARS ? key.slice(0, MAX_SHOWN_CHARS) : key;
  const parts = [];
  let plain = "";
  const mark = (text) => {
    if (plain !== "") parts.push(plain);
    plain = "";
    parts.push(h("i", {}, text));
  };
  for (const one of characters(cut)) {
    if (one.byte !== undefined) mark(`\\x${one.byte.toString(16).padStart(2, "0")}`);
    else if (UNSEEN.test(one.text)) mark(`\\u{${one.text.codePointAt(0).toString(16)}}`);
    else plain += one.text;
  }
  if (plain !== "") parts.push(plain);
  if (cut !== key) parts.push(h("i", {}, ` … ${key.length} bytes`));
  if (key === "") parts.push(h("i", {}, "(empty)"));
  return h("span", { class: "key", dir: "ltr" }, parts);
}

/** The characters of UTF-8 bytes, and the bytes that are none. */
function* characters(latin1) {
  for (let i = 0; i < latin1.length; ) {
    const first = latin1.charCodeAt(i);
    const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
    const text = length === 0 ? undefined : utf8(latin1.slice(i, i + length));
    if (text === undefined) {
      yield { byte: first };
      i++;
    } else {
      yield { text };
      i += length;
    }
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of latin1 text as UTF-8; undefined where they are none. */
export function utf8(latin1) {
  try {
    return decoder.decode(Uint8Array.from(latin1, (char) => char.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

/** Text as latin1 bytes of its UTF-8. */
export function latin1(text) {
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return bytes;
}
