/** Tables that kubectl prints: columns, and the cells of an object. */
import type { KubeObject } from "../meta/object.ts";
import { metaTime, parseTime } from "../meta/time.ts";
import type { TableColumn, TableConvertor } from "../rest/interfaces.ts";
import { ageSince } from "./age.ts";

/** A column and its cell. */
export interface TableField {
  readonly column: TableColumn;
  cell(object: KubeObject, nowMs: number): unknown;
}

/** @param priority 0 is shown always, 1 in wide output */
export function textColumn(
  name: string,
  description: string,
  cell: TableField["cell"],
  priority = 0,
): TableField {
  return { column: { name, type: "string", format: "", description, priority }, cell };
}

/** The object's name; kubectl adds the kind where it prints several. */
export function nameColumn(priority = 0): TableField {
  const description = "The name, unique among the objects of the kind in the namespace.";
  return {
    column: { name: "Name", type: "string", format: "name", description, priority },
    cell: (object) => object.metadata.name ?? "",
  };
}

/** The time since the object's creation. */
export const AGE: TableField = textColumn(
  "Age",
  "The time since the object was created.",
  (object, nowMs) => ageSince(object.metadata.creationTimestamp, nowMs),
);

/** A table with these columns. */
export function tableOf(...fields: readonly TableField[]): TableConvertor {
  return {
    columns: fields.map(({ column }) => column),
    cells: (object, nowMs) => fields.map((field) => field.cell(object, nowMs)),
  };
}

/** Name and creation time: the table of kinds without one of their own. */
export const DEFAULT_TABLE: TableConvertor = tableOf(nameColumn(), {
  column: {
    name: "Created At",
    type: "date",
    format: "",
    description: "The time at which the object was created, in UTC.",
    priority: 0,
  },
  cell: ({ metadata }) => {
    const ms = parseTime(metadata.creationTimestamp);
    return ms === undefined ? "0001-01-01T00:00:00Z" : metaTime(ms);
  },
});

/** Name and age: the table of built-in kinds without other columns. */
export const NAME_AND_AGE: TableConvertor = tableOf(nameColumn(), AGE);
