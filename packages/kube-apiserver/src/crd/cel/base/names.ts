/** The names of fields in expressions (apiserver: pkg/cel/escaping.go). */

/** Words that are no names of variables, but of fields. */
export const KEYWORDS: ReadonlySet<string> = new Set(
  (
    "true false null in as break const continue else for function if import let loop package " +
    "namespace return var void while"
  ).split(" "),
);

const PARTS = /__|\.|-|\//g;
const ESCAPES: Readonly<Record<string, string>> = {
  __: "__underscores__",
  ".": "__dot__",
  "-": "__dash__",
  "/": "__slash__",
};

/** Undefined for a field that expressions cannot name. */
export function escapeName(name: string): string | undefined {
  if (KEYWORDS.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_.\-/][A-Za-z0-9_.\-/]*$/.test(name)) return undefined;
  return name.replace(PARTS, (part) => ESCAPES[part] as string);
}
