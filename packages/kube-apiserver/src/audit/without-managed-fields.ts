/** Objects, lists and tables without metadata.managedFields, for policies that omit them. */

interface WithMetadata {
  readonly metadata?: { readonly managedFields?: unknown };
  readonly items?: unknown;
  readonly rows?: unknown;
  /** Of a row of a table. */
  readonly object?: unknown;
}

/** A copy without them, or the value itself where it has none. */
export function withoutManagedFields(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const plain = withoutOwn(value as WithMetadata);
  const { items, rows, object } = plain;
  if (Array.isArray(items)) return { ...plain, items: items.map(withoutManagedFields) };
  if (Array.isArray(rows)) return { ...plain, rows: rows.map(withoutManagedFields) };
  return object === undefined ? plain : { ...plain, object: withoutManagedFields(object) };
}

function withoutOwn(value: WithMetadata): WithMetadata {
  if (value.metadata?.managedFields === undefined) return value;
  const { managedFields: _, ...metadata } = value.metadata;
  return { ...value, metadata };
}
