/** How defaults read and set the fields of an object. */

/** The fields of an object before it is made. */
export interface FieldValues {
  readonly names: readonly string[];
  get(field: string): unknown;
  set(field: string, value: unknown): void;
  /** Sets a field that is absent or, unless it is a pointer in Go, "" or 0. */
  setMissing(field: string, value: unknown): void;
}

export type Defaulter = (fields: FieldValues) => void;
