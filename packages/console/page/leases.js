/** Leases, and the keys that hang on them. */
import { call, hexId, session } from "./api.js";
import { countText, h, keyText, spanText, table } from "./dom.js";
import { keyAddress, mayWrite } from "./keys.js";

/** Leases that are read at a time. */
const STEP = 50;
/** Keys of a lease that are shown. */
const MAX_KEYS = 20;

/** What a lease has: { id, ttl, granted, keys }; `ttl` is -1 for one that has ended. */
export async function leaseOf(id, signal) {
  const body = { ID: id, keys: true };
  const found = await call("/v3/lease/timetolive", body, signal);
  return {
    id,
    ttl: Number(found.TTL ?? 0),
    granted: Number(found.grantedTTL ?? 0),
    keys: (found.keys ?? []).map(atob),
  };
}

/** The ids of all leases. */
export async function leaseIds(signal) {
  const { leases = [] } = await call("/v3/lease/leases", {}, signal);
  return leases.map(({ ID }) => ID);
}

export async function show(root, { signal, guard, ask }) {
  const ids = await leaseIds(signal);
  const list = h("div");
  const more = h("button", { type: "button" }, "more …");
  let shown = 0;
  const step = guard(async () => {
    const part = ids.slice(shown, shown + STEP);
    shown += part.length;
    more.hidden = shown >= ids.length;
    const found = await Promise.all(part.map((id) => leaseOf(id, signal)));
    list.append(
      table(
        [["Lease"], ["Left", "number"], ["Granted", "number"], ["Keys"], [""]],
        found.filter(({ ttl }) => ttl >= 0).map(row),
      ),
    );
  });
  const row = (lease) => [
    h("span", { class: "key" }, hexId(lease.id)),
    spanText(lease.ttl * 1000),
    spanText(lease.granted * 1000),
    h("div", {}, keyLinks(lease.keys)),
    mayRevoke(lease)
      ? h("button", { type: "button", class: "danger", onclick: () => revoke(lease) }, "Revoke")
      : "",
  ];
  const revoke = guard(async ({ id, keys }) => {
    const title = `Revoke lease ${hexId(id)}, with its ${countText(keys.length)} keys?`;
    if ((await ask(title, [], "Revoke")) === undefined) return;
    await call("/v3/lease/revoke", { ID: id });
    root.replaceChildren();
    await show(root, { signal, guard, ask });
  });
  more.addEventListener("click", step);
  root.replaceChildren(h("p", {}, `${countText(ids.length)} leases`), list, more);
  await step();
}

function mayRevoke({ keys }) {
  return !session.isAuthOn || keys.every(mayWrite);
}

function keyLinks(keys) {
  const links = keys
    .slice(0, MAX_KEYS)
    .map((key) => h("div", {}, h("a", { href: keyAddress(key) }, keyText(key))));
  if (keys.length > MAX_KEYS) links.push(`and ${countText(keys.length - MAX_KEYS)} more`);
  return links.length === 0 ? h("span", { class: "faint" }, "none") : links;
}
