/**
 * What roles permit. Ranges are as etcd has them: an empty end is one key, "\0" all from the key.
 */

const ROOT = "root";

/** A range as [from, to), `to` undefined for no end. */
function interval(key, end) {
  if (end === "") return [key, `${key}\0`];
  return [key === "\0" ? "" : key, end === "\0" ? undefined : end];
}

/**
 * Whether the roles permit a read ("READ") or a write ("WRITE") of a whole range.
 * @param roles [{ role, permissions: [{ type, key, end }] }]
 * @returns { isAllowed, by }: the roles that take part
 */
export function verdict(roles, access, key, end) {
  if (roles.some(({ role }) => role === ROOT)) return { isAllowed: true, by: [ROOT] };
  const [from, to] = interval(key, end);
  const grants = roles
    .flatMap(({ role, permissions }) =>
      permissions
        .filter(({ type }) => type === access || type === "READWRITE")
        .map((one) => [...interval(one.key, one.end), role]),
    )
    .sort(([a], [b]) => (a < b ? -1 : 1));
  let reached = from;
  const by = new Set();
  for (const [start, stop, role] of grants) {
    if (start > reached) break;
    if (stop !== undefined && stop <= reached) continue;
    by.add(role);
    if (stop === undefined || (to !== undefined && stop >= to))
      return { isAllowed: true, by: [...by] };
    reached = stop;
  }
  return { isAllowed: false, by: [] };
}
