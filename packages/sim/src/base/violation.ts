/** A promise of the cluster is broken. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function violate(property: string, detail: string): never {
  throw new Violation(`${property}: ${detail}`);
}
