/** Times in time zones: by their name, such as "Europe/Berlin", or an offset, such as "+05:30". */
import { keepNewest } from "@quorate/host";
import { EvaluationError, floorDiv, type Timestamp, zoneOffset } from "./values.ts";

/** A date whose UTC fields are those of the time in the zone. Throws EvaluationError. */
export function dateIn({ ns }: Timestamp, zone: string): Date {
  const utc = new Date(Number(floorDiv(ns, 1_000_000n)));
  if (zone === "" || zone === "UTC") return utc;
  const offset = zoneOffset(zone);
  if (offset !== undefined) return new Date(utc.getTime() + Number(offset) * 1000);
  return new Date(utc.getTime() + namedOffsetMs(utc, zone));
}

/** Formats of zones; the one that was made first goes first. */
const MAX_FORMATS = 100;
const formats = new Map<string, Intl.DateTimeFormat>();

function namedOffsetMs(utc: Date, zone: string): number {
  const parts = formatOf(zone).formatToParts(utc);
  const number = (type: string): number =>
    Number(parts.find((part) => part.type === type)?.value ?? 0);
  const local = Date.UTC(
    number("year"),
    number("month") - 1,
    number("day"),
    number("hour"),
    number("minute"),
    number("second"),
  );
  return local - Math.floor(utc.getTime() / 1000) * 1000;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  let made: Intl.DateTimeFormat;
  try {
    made = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch {
    throw new EvaluationError(`unknown time zone ${timeZone}`);
  }
  formats.set(timeZone, made);
  keepNewest(formats, MAX_FORMATS);
  return made;
}
