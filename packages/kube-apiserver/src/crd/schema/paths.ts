/** Paths of fields as errors show them (apimachinery: util/validation/field/path.go). */

/** "spec" and "replicas": "spec.replicas". */
export function child(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** An entry of a map: "labels" and "a.b": "labels[a.b]". */
export function keyed(path: string, key: string): string {
  return `${path}[${key}]`;
}

/** An item of a list. */
export function at(path: string, index: number): string {
  return `${path}[${index}]`;
}

/** The path as Kubernetes shows it: the root is Go's nil path. */
export function shownPath(path: string): string {
  return path === "" ? "<nil>" : path;
}
