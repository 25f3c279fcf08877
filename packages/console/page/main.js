/** The page's frame: views by the address, login, keys of the keyboard, errors. */
import { call, login, logout, session } from "./api.js";
import { field, form, h } from "./dom.js";
import * as keys from "./keys.js";
import * as leases from "./leases.js";
import * as locks from "./locks.js";
import * as log from "./log.js";
import * as members from "./members.js";
import * as rates from "./rates.js";
import * as top from "./top.js";
import * as users from "./users.js";
import * as watch from "./watch.js";

const VIEWS = {
  members: ["Members", members],
  rates: ["Rates", rates],
  keys: ["Keys", keys],
  watch: ["Watch", watch],
  leases: ["Leases", leases],
  locks: ["Locks", locks],
  users: ["Users", users],
  top: ["Top", top],
  log: ["Log", log],
};

const content = document.getElementById("content");
const dialog = document.getElementById("dialog");
let shown = new AbortController();

/** Shows an error above the view, or the login where that helps; no error clears it. */
function report(error) {
  if (error?.name === "AbortError") return;
  if (error?.needsLogin) {
    logout();
    showLogin(session.isAuthOn ? "Log in to go on." : "");
    return;
  }
  document.getElementById("alert").replaceChildren(error === undefined ? "" : error.message);
}

/** Runs work of the view that is shown; its error is reported if that view is still shown. */
function guarded(signal, work) {
  return async (...args) => {
    try {
      const result = await work(...args);
      if (!signal.aborted) report(undefined);
      return result;
    } catch (error) {
      if (!signal.aborted) report(error);
      return undefined;
    }
  };
}

/** Repeats work while the view is shown and the page is seen. */
async function every(signal, ms, work) {
  const once = guarded(signal, work);
  while (!signal.aborted) {
    if (!document.hidden) await once();
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

/** The view and its parameters in the address. */
function place() {
  const [name, query = ""] = location.hash.slice(2).split(/\?(.*)/s);
  return { name: Object.hasOwn(VIEWS, name) ? name : "members", query: new URLSearchParams(query) };
}

/** Asks before something is changed. Resolves with the form's fields; undefined if not. */
function ask(title, fields, action) {
  return new Promise((resolve) => {
    let result;
    const done = (given) => {
      result = given;
      dialog.close();
    };
    dialog.replaceChildren(
      form(
        {},
        (given) => done(Object.fromEntries(new FormData(given))),
        h("h2", {}, title),
        fields,
        h("button", { class: "danger" }, action),
        h("button", { type: "button", onclick: () => done(undefined) }, "Cancel"),
      ),
    );
    dialog.addEventListener("close", () => resolve(result), { once: true });
    dialog.showModal();
  });
}

function show() {
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  report(undefined);
  if (session.isAuthOn && session.token === undefined) {
    showLogin("");
    return;
  }
  const { name, query } = place();
  const [title, view] = VIEWS[name];
  document.title = `${title} – Quorate console`;
  document
    .getElementById("views")
    .replaceChildren(
      ...Object.entries(VIEWS).map(([key, [text]], i) =>
        h(
          "a",
          { href: `#/${key}`, "aria-current": key === name && "page", title: `${text} (${i + 1})` },
          text,
        ),
      ),
    );
  showWho();
  const root = h("div", { "data-view": name });
  content.replaceChildren(root);
  const context = {
    query,
    signal,
    ask,
    guard: (work) => guarded(signal, work),
    every: (ms, work) => every(signal, ms, work),
  };
  // What the view has guarded itself may have failed, and is reported already.
  view.show(root, context)?.catch((error) => {
    if (!signal.aborted) report(error);
  });
}

function showWho() {
  const theme = h("button", { type: "button", title: "Dark or light", onclick: turnTheme }, "◐");
  const out = () => {
    logout();
    show();
  };
  document
    .getElementById("who")
    .replaceChildren(
      session.user === undefined
        ? h("span", { class: "faint" }, session.isAuthOn ? "" : "no users")
        : h("span", {}, session.user),
      ...(session.user === undefined
        ? []
        : [h("button", { type: "button", onclick: out }, "Log out")]),
      theme,
    );
}

function turnTheme() {
  const root = document.documentElement;
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (isDark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
}

function showLogin(text) {
  shown.abort();
  shown = new AbortController();
  document.getElementById("views").replaceChildren();
  document.getElementById("alert").replaceChildren(text);
  showWho();
  const user = h("input", { name: "user", autocomplete: "username", required: true });
  const password = h("input", {
    name: "password",
    type: "password",
    autocomplete: "current-password",
    required: true,
  });
  const submit = async () => {
    try {
      await login(user.value, password.value);
      show();
    } catch (error) {
      logout();
      document.getElementById("alert").replaceChildren(error.message);
      password.select();
    }
  };
  content.replaceChildren(
    form(
      { class: "login" },
      submit,
      field("User", user),
      field("Password", password),
      h("button", {}, "Log in"),
    ),
  );
  user.focus();
}

const HELP = [
  ["1 to 9", "the views"],
  ["/", "the first field"],
  ["r", "read again"],
  ["↑ ↓ ← →, Enter", "in the tree of keys"],
  ["t", "dark or light"],
  ["Esc", "leave a field or a dialog"],
];

function showHelp() {
  const rows = HELP.map(([key, what]) => h("p", {}, h("kbd", {}, key), ` ${what}`));
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  dialog.replaceChildren(h("h2", {}, "Keys"), ...rows, close);
  dialog.showModal();
}

addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && isTyping) event.target.blur();
  if (isTyping || dialog.open || event.ctrlKey || event.altKey || event.metaKey) return;
  const views = Object.keys(VIEWS);
  if (views[Number(event.key) - 1] !== undefined)
    location.hash = `#/${views[Number(event.key) - 1]}`;
  else if (event.key === "/") content.querySelector("input")?.focus();
  else if (event.key === "r") show();
  else if (event.key === "t") turnTheme();
  else if (event.key === "?") showHelp();
  else return;
  event.preventDefault();
});
addEventListener("hashchange", show);

try {
  session.isAuthOn = (await call("/v3/auth/status")).enabled === true;
  show();
} catch (error) {
  report(error);
}
