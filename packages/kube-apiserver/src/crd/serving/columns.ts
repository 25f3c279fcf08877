/** Printer columns (apiextensions-apiserver: registry/customresource/tableconvertor). */

import {
  canonicalJson,
  humanDuration,
  type Json,
  jsonOf,
  type KubeObject,
  nameColumn,
  parseTime,
  type TableConvertor,
  type TableField,
  tableOf,
} from "@quorate/kube-storage";
import { goNumber } from "../../apply/go-text.ts";
import type { PrinterColumn } from "../definition/types.ts";
import { JsonPath, JsonPathError } from "./json-path.ts";

const AGE: PrinterColumn = {
  name: "Age",
  type: "date",
  description: "The time at which the object was created.",
  jsonPath: ".metadata.creationTimestamp",
};

/** The table of a version. With a path that cannot be read, names alone are shown. */
export function columnsTable(columns: readonly PrinterColumn[] | undefined): TableConvertor {
  const shown = columns === undefined || columns.length === 0 ? [AGE] : columns;
  try {
    return tableOf(nameColumn(), ...shown.map(fieldOfColumn));
  } catch (error) {
    if (error instanceof JsonPathError) return tableOf(nameColumn());
    throw error;
  }
}

function fieldOfColumn(column: PrinterColumn): TableField {
  const { name = "", type = "", format = "", priority = 0, jsonPath = "" } = column;
  const path = new JsonPath(jsonPath);
  const description =
    column.description ?? `Custom resource definition column (in JSONPath format): ${jsonPath}`;
  return {
    column: { name, type, format, description, priority },
    cell: (object: KubeObject, nowMs) => {
      const [value] = path.find(jsonOf(object));
      return value === undefined ? null : cell(type, value, nowMs);
    },
  };
}

function cell(type: string, value: Json, nowMs: number): unknown {
  if (type === "string") return textOf(value);
  if (value === null) return null;
  switch (type) {
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? ageOf(value, nowMs) : null;
    default:
      return null;
  }
}

function ageOf(text: string, nowMs: number): string {
  if (text === "" || text === "null") return "<unknown>";
  const ms = parseTime(text);
  return ms === undefined ? "<invalid>" : humanDuration(nowMs - ms);
}

/** Any value as a text, as kubectl's -o jsonpath prints it. */
export function textOf(value: Json): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return goNumber(value);
  if (value === null) return "<nil>";
  return typeof value === "object" ? canonicalJson(value) : String(value);
}
