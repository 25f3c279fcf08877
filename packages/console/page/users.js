/** Users, roles, and what a user may do. */
import { call, endOf, roleOf, rolesOf, session } from "./api.js";
import { field, form, h, keyText, latin1, table } from "./dom.js";
import { verdict } from "./permissions.js";

/** Users and roles that are shown. */
const MAX_SHOWN = 200;

export async function show(root, { guard }) {
  if (!session.isAuthOn) {
    const notice = h("div", { class: "notice" });
    notice.append(
      "Authentication is off: whoever reaches this port may read and write everything. ",
      "docs/guide/users-and-roles.md says how to turn it on.",
    );
    root.replaceChildren(notice);
  }
  const lists = h("div");
  root.append(canI(guard), lists);
  const isRoot = !session.isAuthOn || session.roles.some(({ role }) => role === "root");
  const users = isRoot ? ((await call("/v3/auth/user/list")).users ?? []) : [session.user];
  const roles = isRoot
    ? ((await call("/v3/auth/role/list")).roles ?? [])
    : session.roles.map(({ role }) => role);
  const shown = await Promise.all(
    users.slice(0, MAX_SHOWN).map(async (name) => {
      const { roles: of = [] } = await call("/v3/auth/user/get", { name });
      return [keyText(latin1(name)), of.join(", ") || h("span", { class: "faint" }, "none")];
    }),
  );
  const grants = await Promise.all(roles.slice(0, MAX_SHOWN).map(roleOf));
  lists.replaceChildren(
    h("h2", {}, `Users (${users.length})`),
    table([["User"], ["Roles"]], shown),
    h("h2", {}, `Roles (${roles.length})`),
    table(
      [["Role"], ["Permissions"]],
      grants.map(({ role, permissions }) => [
        keyText(latin1(role)),
        h("div", {}, role === "root" ? "everything" : permissions.map(grantText)),
      ]),
    ),
  );
}

function grantText({ type, key, end }) {
  return h("div", {}, `${type.toLowerCase()} `, rangeText(key, end));
}

/** A range in words. */
function rangeText(key, end) {
  if (end === "") return keyText(key);
  if (key === "\0" && end === "\0") return "all keys";
  if (end === endOf(key)) return h("span", {}, keyText(key), "*");
  if (end === "\0") return h("span", {}, "from ", keyText(key));
  return h("span", {}, keyText(key), " to ", keyText(end));
}

const ACCESS = { read: "READ", watch: "READ", write: "WRITE", delete: "WRITE" };

function canI(guard) {
  const user = h("input", { value: session.user ?? "", required: true, size: 14 });
  const action = h(
    "select",
    {},
    Object.keys(ACCESS).map((name) => h("option", {}, name)),
  );
  const key = h("input", { required: true, size: 24 });
  const isPrefix = h("input", { type: "checkbox" });
  const answer = h("output", {});
  const decide = guard(async () => {
    const roles = user.value === session.user ? session.roles : await rolesOf(user.value);
    const name = latin1(key.value);
    const end = isPrefix.checked ? endOf(name) : "";
    const { isAllowed, by } = verdict(roles, ACCESS[action.value], name, end);
    answer.className = isAllowed ? "good" : "bad";
    answer.textContent = isAllowed ? `yes, by ${by.join(", ")}` : "no";
  });
  return form(
    {},
    decide,
    field("May user", user),
    field("do", action),
    field("with key", key),
    field("all below it", isPrefix),
    h("button", {}, "Ask"),
    answer,
  );
}
