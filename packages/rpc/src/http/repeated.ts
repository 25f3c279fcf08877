/** The values of headers that come more than once in a request, beside the joined ones. */

/**
 * Notes one more value. @returns `repeated`, or a new map
 * @param before the values of the name so far, joined
 */
export function withRepeated(
  repeated: Map<string, string[]> | undefined,
  name: string,
  before: string,
  value: string,
): Map<string, string[]> {
  const map = repeated ?? new Map<string, string[]>();
  const values = map.get(name);
  if (values === undefined) map.set(name, [before, value]);
  else values.push(value);
  return map;
}
