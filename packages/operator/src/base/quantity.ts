/** Sizes of storage as Kubernetes writes them, such as "8Gi"; the schema lets in no other form. */

const UNITS = "kMGTPE";

/**
 * Bytes of a size; 0 for what is none. Source: k8s.io/apimachinery, pkg/api/resource.
 * @param text digits with an optional fraction, and k, M, G, T, P, E or Ki, Mi, ...
 */
export function bytesOf(text: string): number {
  const isBinary = text.endsWith("i");
  const number = Number.parseFloat(text);
  const unit = (text.at(isBinary ? -2 : -1) ?? "").replace("K", "k");
  const power = UNITS.indexOf(unit) + 1;
  return Number.isFinite(number) ? number * (isBinary ? 1024 : 1000) ** power : 0;
}
