/** Forms of the v2 API as clients send them. */

/** Fields of a form; those that are undefined are left out. */
export type Fields = Readonly<Record<string, string | number | boolean | undefined>>;

/** The form as a query or a body. */
export function formText(fields: Fields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`)
    .join("&");
}
