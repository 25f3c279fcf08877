/** The order of versions: v2 > v1 > v1beta2 > v1alpha1 > others (apimachinery: util/version). */

const STAGES = ["alpha", "beta", ""];

function parse(version: string): readonly number[] | undefined {
  const parts = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (parts === null) return undefined;
  return [STAGES.indexOf(parts[2] ?? ""), Number(parts[1]), Number(parts[3] ?? 0)];
}

/** Less than 0 where `a` is the older one. Versions of another form are older, by their names. */
export function compareKubeVersions(a: string, b: string): number {
  const one = parse(a);
  const other = parse(b);
  if (one === undefined || other === undefined) {
    if (one !== undefined) return 1;
    if (other !== undefined) return -1;
    return a < b ? 1 : a > b ? -1 : 0;
  }
  for (const [i, part] of one.entries()) if (part !== other[i]) return part - other[i];
  return 0;
}
