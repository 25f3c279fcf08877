/** Numbers as top shows them, in few characters. */
import { humanBytes } from "../go-format.ts";

/** What stands where nothing is known. */
export const UNKNOWN = "-";

/** A whole number in groups of three: "12,345". */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** So many a second; with a decimal where there are few. */
export function shownRate(value: number | undefined): string {
  return value === undefined
    ? UNKNOWN
    : value > 0 && value < 10
      ? value.toFixed(1)
      : grouped(value);
}

export function shownCount(value: number | undefined): string {
  return value === undefined ? UNKNOWN : grouped(value);
}

export function shownBytes(value: number | undefined): string {
  return value === undefined ? UNKNOWN : humanBytes(value);
}

/** A share of 1 in per cent. */
export function shownShare(value: number | undefined): string {
  return value === undefined ? UNKNOWN : `${Math.round(value * 100)}%`;
}

/** Seconds, as milliseconds where they are few. */
export function shownSeconds(value: number | undefined): string {
  if (value === undefined) return UNKNOWN;
  const ms = value * 1000;
  return ms >= 1000 ? `${value.toFixed(2)} s` : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
}
