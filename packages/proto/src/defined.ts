/**
 * The value, where the caller knows that there is one and the type does not say so. Throws
 * TypeError where there is none, before an undefined value gets further.
 * @param what the missing thing, as the message names it
 */
export function defined<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new TypeError(`${what} is missing`);
  return value;
}
