/**
 * Keys: a tree that is read as it is opened, and of one key its value, its history, and what
 * changed between two revisions.
 */
import { call, get, own, prefixRange, range, session } from "./api.js";
import { changedItems } from "./changes.js";
import { diffLines } from "./diff.js";
import { bytesText, countText, field, form, h, keyText, latin1, table, utf8 } from "./dom.js";
import { verdict } from "./permissions.js";
import { textOf, viewsOf } from "./values.js";

/** Versions of a key that are read at a time. */
const HISTORY_STEP = 20;

/** Whether this user may write a key; a member decides again. */
export function mayWrite(key) {
  return !session.isAuthOn || verdict(session.roles, "WRITE", key, "").isAllowed;
}

/** The address of a key's view. @param key latin1 */
export function keyAddress(key) {
  return `#/keys?${new URLSearchParams({ key: btoa(key) })}`;
}

/** Where a user's tree begins: what its roles may read. */
function roots() {
  if (!session.isAuthOn || verdict(session.roles, "READ", "\0", "\0").isAllowed) return [""];
  const readable = session.roles
    .flatMap(({ permissions }) => permissions)
    .filter(({ type }) => type !== "WRITE")
    .map(({ key }) => (key === "\0" ? "" : key));
  return [...new Set(readable)];
}

export async function show(root, context) {
  const { query } = context;
  const prefix = h("input", { name: "prefix", value: query.get("prefix") ?? "", size: 30 });
  const revision = h("input", {
    name: "revision",
    inputmode: "numeric",
    pattern: "[0-9]*",
    value: query.get("revision") ?? "",
    size: 8,
    placeholder: "newest",
  });
  const since = h("input", {
    name: "since",
    inputmode: "numeric",
    pattern: "[0-9]*",
    value: query.get("since") ?? "",
    size: 8,
    placeholder: "nothing",
  });
  const tree = h("ul", { role: "tree", "aria-label": "Keys" });
  const details = h("section", { "aria-label": "Key" });
  const at = () => Number(revision.value) || 0;
  const state = { ...context, details, at };
  const reload = context.guard(async () => {
    details.replaceChildren();
    const starts = prefix.value === "" ? roots() : [latin1(prefix.value)];
    const from = Number(since.value);
    const read = (start) =>
      from > 0 ? changedItems(start, from, state) : items(start, start, state);
    const lists = await Promise.all(starts.map(read));
    tree.replaceChildren(...lists.flat());
    if (tree.children.length === 0) tree.append(h("li", { class: "faint" }, "no keys"));
    const first = tree.querySelector("button");
    if (first !== null) first.tabIndex = 0;
  });
  const create = async () => {
    const written = await edit(prefix.value, "", state, true);
    if (written !== undefined) await reload();
  };
  root.replaceChildren(
    form(
      {},
      reload,
      field("Prefix", prefix),
      field("As of revision", revision),
      field("Difference from revision", since),
      h("button", {}, "Show"),
      h("button", { type: "button", onclick: context.guard(create) }, "New key"),
    ),
    h("div", { class: "split" }, tree, details),
  );
  tree.addEventListener("keydown", moved);
  const wanted = query.get("key");
  await reload();
  if (wanted !== null) await showKey(atob(wanted), state);
}

/** The items of a part of a folder, with one that goes on. */
async function items(prefix, from, state) {
  const body = { prefix: btoa(prefix), from: btoa(from), revision: state.at() };
  const { children, next } = await own("children", body, state.signal);
  const list = children.map(({ name, isFolder }) => {
    const key = atob(name);
    return isFolder ? folderItem(prefix, key, state) : keyItem(prefix, key, state);
  });
  if (next === undefined) return list;
  const more = h("li", { role: "treeitem" });
  const onclick = state.guard(async () => {
    const added = await items(prefix, atob(next), state);
    more.replaceWith(...added);
    added[0]?.querySelector("button").focus();
  });
  more.append(h("button", { type: "button", tabindex: -1, onclick }, "more …"));
  return [...list, more];
}

const nameBelow = (prefix, key) => keyText(key.slice(prefix.length));

function folderItem(parent, prefix, state) {
  const count = h("span", { class: "faint" });
  const group = h("ul", { role: "group" });
  const item = h("li", { role: "treeitem", "aria-expanded": "false" });
  const toggle = state.guard(async () => {
    const isOpen = item.getAttribute("aria-expanded") === "true";
    item.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) group.remove();
    else {
      item.append(group);
      group.replaceChildren(...(await items(prefix, prefix, state)));
    }
  });
  item.append(
    h(
      "button",
      { type: "button", tabindex: -1, onclick: toggle },
      "▸ ",
      nameBelow(parent, prefix),
      count,
    ),
  );
  counts.add(async () => {
    const fields = { ...prefixRange(prefix), count_only: true, revision: state.at() };
    const { count: keys } = await range(fields, state.signal);
    count.replaceChildren(countText(keys));
  });
  return item;
}

/** Counts of folders, a few at a time. */
const counts = {
  running: 0,
  waiting: [],
  add(work) {
    this.waiting.push(work);
    while (this.running < 4 && this.waiting.length > 0) {
      this.running++;
      this.waiting
        .shift()()
        // A count that fails, or is not wanted any more, is left out.
        .catch(() => {})
        .finally(() => {
          this.running--;
          const next = this.waiting.shift();
          if (next !== undefined) this.add(next);
        });
    }
  },
};

function keyItem(parent, key, state) {
  const onclick = state.guard(() => showKey(key, state));
  const item = h("li", { role: "treeitem", "aria-selected": "false" });
  const select = () => {
    for (const one of document.querySelectorAll('[aria-selected="true"]'))
      one.setAttribute("aria-selected", "false");
    item.setAttribute("aria-selected", "true");
    onclick();
  };
  item.append(
    h("button", { type: "button", tabindex: -1, onclick: select }, nameBelow(parent, key)),
  );
  return item;
}

/** Arrows move through the tree, as trees of the desktop do. */
function moved(event) {
  const buttons = [...event.currentTarget.querySelectorAll("button")];
  const here = buttons.indexOf(document.activeElement);
  if (here < 0) return;
  const item = buttons[here].parentElement;
  const isOpen = item.getAttribute("aria-expanded");
  let to;
  if (event.key === "ArrowDown") to = buttons[here + 1];
  else if (event.key === "ArrowUp") to = buttons[here - 1];
  else if (event.key === "Home") to = buttons[0];
  else if (event.key === "End") to = buttons.at(-1);
  else if (event.key === "ArrowRight" && isOpen === "false") buttons[here].click();
  else if (event.key === "ArrowRight" && isOpen === "true") to = buttons[here + 1];
  else if (event.key === "ArrowLeft" && isOpen === "true") buttons[here].click();
  else if (event.key === "ArrowLeft")
    to = item.parentElement.closest('[role="treeitem"]')?.querySelector("button");
  else return;
  event.preventDefault();
  if (to === undefined || to === null) return;
  buttons[here].tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

async function showKey(key, state) {
  const { details, signal, at } = state;
  const record = await get(key, at(), signal);
  if (record === undefined) {
    const text = at() > 0 ? ` did not exist at revision ${at()}.` : " does not exist.";
    details.replaceChildren(h("p", {}, keyText(key), text));
    return;
  }
  const { created, revision, version, lease, value } = record;
  details.replaceChildren(
    h("h2", {}, keyText(key)),
    table(
      [["Created"], ["Changed"], ["Version"], ["Size"], ["Lease"]],
      [
        [
          `revision ${created}`,
          `revision ${revision}`,
          countText(version),
          bytesText(value.length),
          lease === "0" ? "none" : h("a", { href: "#/leases" }, BigInt(lease).toString(16)),
        ],
      ],
    ),
    ...changes(record, state),
    valueView(value),
    history(record, state),
  );
}

/** The buttons that change a key, for who may. */
function changes(record, state) {
  const { key } = record;
  if (!mayWrite(key)) return [];
  const onedit = state.guard(async () => {
    const written = await edit(key, record.value, state, false, record.revision);
    if (written !== undefined) await showKey(key, state);
  });
  const ondelete = state.guard(async () => {
    const title = h("span", {}, "Delete ", keyText(key), "?");
    if ((await state.ask(title, [], "Delete")) === undefined) return;
    await changed(key, record.revision, { request_delete_range: { key: btoa(key) } });
    await showKey(key, state);
  });
  return [
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", onclick: onedit }, "Edit"),
      h("button", { type: "button", class: "danger", onclick: ondelete }, "Delete"),
    ),
  ];
}

/** Changes a key if it is still at that revision (0: if it does not exist). */
async function changed(key, revision, operation) {
  const compare = { result: "EQUAL", target: "MOD", key: btoa(key), mod_revision: revision };
  const body = { compare: [compare], success: [operation] };
  const { succeeded } = await call("/v3/kv/txn", body);
  if (!succeeded) throw new Error("the key was changed meanwhile: nothing was written");
}

async function edit(key, value, state, isNew, revision = 0) {
  const name = h("input", { name: "key", value: key, required: true });
  const area = h("textarea", { name: "value" });
  const text = utf8(value);
  if (text === undefined) throw new Error("the value is no text: it cannot be edited here");
  area.value = text;
  const fields = isNew ? [field("Key", name), field("Value", area)] : [field("Value", area)];
  const given = await state.ask(isNew ? "New key" : keyText(key), fields, "Write");
  if (given === undefined) return undefined;
  const target = isNew ? latin1(given.key) : key;
  // A form's text has other ends of lines than the value had.
  const put = { key: btoa(target), value: btoa(latin1(area.value)), ignore_lease: !isNew };
  await changed(target, revision, { request_put: put });
  return target;
}

/** A value in the view that is chosen. */
function valueView(value) {
  const views = viewsOf(value);
  const pre = h("pre", { tabindex: 0 });
  const buttons = views.map(([name, text]) =>
    h(
      "button",
      { type: "button", "aria-pressed": "false", onclick: () => choose(name, text) },
      name,
    ),
  );
  const choose = async (name, text) => {
    for (const button of buttons)
      button.setAttribute("aria-pressed", String(button.textContent === name));
    try {
      pre.textContent = await text;
    } catch (error) {
      pre.textContent = error.message;
    }
  };
  choose(...views[0]);
  return h("div", {}, h("div", { class: "row", role: "group" }, buttons), pre);
}

/** The versions of a key, the newest first, each read at the revision before the next one. */
function history(record, state) {
  const list = h("tbody");
  const titles = ["From", "To", "Revision", "Version", "Size"];
  const head = h(
    "thead",
    { hidden: true },
    h(
      "tr",
      {},
      titles.map((title, i) => h("th", { class: i > 2 && "number", scope: "col" }, title)),
    ),
  );
  const more = h("button", { type: "button" }, "History");
  const diff = h("pre", { hidden: true, tabindex: 0 });
  const known = [];
  let next = record;
  const add = (one) => {
    known.push(one);
    const pick = (name) =>
      h("input", { type: "radio", name, value: known.length - 1, "aria-label": name, onchange });
    list.append(
      h(
        "tr",
        {},
        h("td", {}, pick("before")),
        h("td", {}, pick("after")),
        h("td", {}, one.revision),
        h("td", { class: "number" }, one.version),
        h("td", { class: "number" }, bytesText(one.value.length)),
      ),
    );
  };
  const chosen = (name) => list.querySelector(`input[name=${name}]:checked`)?.value;
  const onchange = state.guard(async () => {
    const [before, after] = [known[chosen("before")], known[chosen("after")]];
    if (before === undefined || after === undefined) return;
    diff.replaceChildren(...diffLines(await textOf(before), await textOf(after)));
    diff.hidden = false;
  });
  const step = async () => {
    for (let i = 0; i < HISTORY_STEP && next !== undefined; i++) {
      add(next);
      next = await before(next, state.signal);
    }
    head.hidden = false;
    more.textContent = "Earlier versions";
    more.hidden = next === undefined;
    if (next === undefined) list.append(h("tr", {}, h("td", { colspan: 5 }, await begin(known))));
    if (known.length > 1) {
      list.querySelector("input[name=before][value='1']").checked ||=
        chosen("before") === undefined;
      list.querySelector("input[name=after]").checked ||= chosen("after") === undefined;
      await onchange();
    }
  };
  more.addEventListener("click", state.guard(step));
  return h(
    "section",
    { class: "history", "aria-label": "History" },
    more,
    h("table", {}, head, list),
    diff,
  );
}

async function before({ key, revision, version }, signal) {
  if (version === 1) return undefined;
  try {
    return await get(key, revision - 1, signal);
  } catch (error) {
    if (/compacted/.test(error.message)) return undefined;
    throw error;
  }
}

async function begin(known) {
  const { version, revision } = known.at(-1);
  return version === 1
    ? `created at revision ${revision}`
    : `what was before revision ${revision} is compacted`;
}
