/**
 * Locks and elections: keys NAME/LEASE in hexadecimal that hang on that lease. Of each name the key
 * that was created first holds it; the others wait in that order.
 */
import { hexId, prefixRange, range } from "./api.js";
import { countText, field, form, h, keyText, latin1, spanText, table } from "./dom.js";
import { keyAddress } from "./keys.js";
import { leaseIds, leaseOf } from "./leases.js";

/** Leases that are looked through for locks; and keys of one name that are shown. */
const MAX_LEASES = 300;
const MAX_WAITING = 20;

export async function show(root, { query, signal, guard }) {
  const name = h("input", { value: query.get("name") ?? "", size: 30 });
  const found = h("div");
  const look = guard(async () => {
    found.replaceChildren(h("p", { class: "faint" }, "looking …"));
    const names = name.value === "" ? await namesOfLeases(signal) : [latin1(name.value)];
    const contests = await Promise.all(names.map((one) => contest(one, signal)));
    const held = contests.filter(({ keys }) => keys.length > 0);
    if (held.length === 0) found.replaceChildren(h("p", {}, "No lock or election is held."));
    else found.replaceChildren(list(held));
  });
  root.replaceChildren(
    form({}, look, field("Name of a lock or election", name), h("button", {}, "Look")),
    found,
  );
  await look();
}

/** The names under which leases have keys. */
async function namesOfLeases(signal) {
  const ids = (await leaseIds(signal)).slice(0, MAX_LEASES);
  const leases = await Promise.all(ids.map((id) => leaseOf(id, signal)));
  const names = leases.flatMap(({ id, keys }) => {
    const suffix = `/${hexId(id)}`;
    return keys.filter((key) => key.endsWith(suffix)).map((key) => key.slice(0, -suffix.length));
  });
  return [...new Set(names)];
}

async function contest(name, signal) {
  const order = { sort_target: "CREATE", sort_order: "ASCEND", limit: MAX_WAITING };
  const { kvs, count } = await range({ ...prefixRange(`${name}/`), ...order }, signal);
  const keys = kvs.filter(({ key, lease }) => key.endsWith(`/${hexId(lease)}`));
  const left = keys.length === 0 ? undefined : await leaseOf(keys[0].lease, signal);
  return { name, keys, count, left };
}

function list(contests) {
  const columns = [
    ["Name"],
    ["Holder"],
    ["Since"],
    ["Lease left", "number"],
    ["Value"],
    ["Waiting", "number"],
  ];
  return table(
    columns,
    contests.map(({ name, keys: [holder, ...waiting], left }) => [
      keyText(name),
      h("a", { href: keyAddress(holder.key) }, keyText(hexId(holder.lease))),
      `revision ${holder.created}`,
      spanText(left.ttl * 1000),
      holder.value === "" ? h("span", { class: "faint" }, "none (a lock)") : keyText(holder.value),
      h(
        "span",
        { title: waiting.map(({ lease }) => hexId(lease)).join("\n") },
        countText(waiting.length),
      ),
    ]),
  );
}
