/** Short forms of numbers. */
import { humanBytes } from "../go-format.ts";

/** The text of an unknown value. */
export const UNKNOWN = "-";

/** A whole number in groups of three: "12,345". */
export function grouped(value: number): string {
  const digits = Math.round(value).toString();
  const first = digits.length % 3;
  const groups = digits.slice(first).match(/\d{3}/g) ?? [];
  return (first === 0 ? groups : [digits.slice(0, first), ...groups]).join(",");
}

/** A rate per second; with a decimal if it is low. */
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

/** A fraction as a percentage. */
export function shownShare(value: number | undefined): string {
  return value === undefined ? UNKNOWN : `${Math.round(value * 100)}%`;
}

/** A time in seconds, shown in milliseconds if short. */
export function shownSeconds(value: number | undefined): string {
  if (value === undefined) return UNKNOWN;
  const ms = value * 1000;
  return ms >= 1000 ? `${value.toFixed(2)} s` : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
}
