/**
 * Tables that kubectl prints: columns, and the cells of an object, ages among them (apimachinery:
 * util/duration/duration.go HumanDuration).
 */
import type { KubeObject } from "../meta/object.ts";
import { metaTime, parseTime } from "../meta/time.ts";
import type { TableColumn, TableConvertor } from "../rest/interfaces.ts";

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

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

function twoUnits(seconds: number, large: number, name: string, small: number, unit: string) {
  const count = Math.floor(seconds / large);
  const rest = Math.floor((seconds % large) / small);
  return rest === 0 ? `${count}${name}` : `${count}${name}${rest}${unit}`;
}

/** Two or three significant figures, such as "5d12h". @param ms negative where clocks differ */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 10 * MINUTE) return twoUnits(seconds, MINUTE, "m", 1, "s");
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 8 * HOUR) return twoUnits(seconds, HOUR, "h", MINUTE, "m");
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 8 * DAY) return twoUnits(seconds, DAY, "d", HOUR, "h");
  if (seconds < 2 * YEAR) return `${Math.floor(seconds / DAY)}d`;
  if (seconds < 8 * YEAR) return twoUnits(seconds, YEAR, "y", DAY, "d");
  return `${Math.floor(seconds / YEAR)}y`;
}

/** The age of a time in an object; "<unknown>" without one. */
export function ageSince(time: unknown, nowMs: number): string {
  const ms = parseTime(time);
  return ms === undefined ? "<unknown>" : humanDuration(nowMs - ms);
}
