/**
 * The watch command: prints events, runs programs for events, and interactive mode.
 */

import {
  badArguments,
  Exit,
  ExitCode,
  FlagError,
  FlagValues,
  type Io,
  LineReader,
  readFlags,
  untilStopped,
} from "@quorate/cli";
import type { Client, ClientError, Watch } from "@quorate/client";
import {
  concat,
  defined,
  ERRORS,
  Event,
  Event_EventType,
  errorNameOf,
  fromUtf8,
  KeyValue,
  quoteBytes,
  WatchResponse,
} from "@quorate/proto";
import { warnOfFailure } from "../connect/advice.ts";
import {
  planWatch,
  type WatchPlan,
  type WatchVariables,
  watchFlags,
} from "../connect/watch-plan.ts";
import {
  type FieldLine,
  type Form,
  headerJson,
  messageJson,
  recordFields,
  recordLines,
} from "../printers/form.ts";
import type { Printer } from "../printers/printer.ts";

/** Interval between reports of the same break. */
const REPEAT_NS = 10_000_000_000n;
/** Most remembered reports. */
const MAX_REPORTED = 100;

/**
 * Reports breaks; the same text of an endpoint once in ten seconds.
 * @param sequel appended to each: what the program does about it
 */
export function breakReporter(io: Io, sequel: string): (error: ClientError) => void {
  const reportedNs = new Map<string, bigint>();
  return (error) => {
    const text = `${error.endpoint}: ${error.message}`;
    const nowNs = io.nowNs();
    const lastNs = reportedNs.get(text);
    if (lastNs !== undefined && nowNs - lastNs < REPEAT_NS) return;
    if (reportedNs.size >= MAX_REPORTED) reportedNs.clear();
    reportedNs.set(text, nowNs);
    warnOfFailure(io, error, `; ${sequel}`);
  };
}

/** Opens the watch of a plan. Throws Error where flags and arguments exclude each other. */
function openWatch(client: Client, io: Io, plan: WatchPlan, flags: FlagValues): Watch {
  if (plan.rangeEnd !== undefined && flags.bool("prefix"))
    throw new Error("`range_end` and `--prefix` are mutually exclusive");
  return client.watch(plan.key, {
    prefix: flags.bool("prefix"),
    ...(plan.rangeEnd === undefined ? {} : { rangeEnd: plan.rangeEnd }),
    revision: flags.int("rev"),
    prevKv: flags.bool("prev-kv"),
    progressNotify: flags.bool("progress-notify"),
    onBreak: breakReporter(io, "the watch continues at the next endpoint that responds"),
  });
}

/** Why a watch was cancelled, with the text of etcd's client. */
function cancelText({ compactRevision, cancelReason }: WatchResponse): string {
  if (compactRevision > 0) return ERRORS.Compacted.text;
  if (cancelReason === "") return ERRORS.FutureRev.text;
  return errorNameOf(cancelReason) === undefined
    ? `rpc error: code = FailedPrecondition desc = ${cancelReason}`
    : cancelReason;
}

/**
 * Prints the responses of a watch until it ends. Throws Exit if a program that is run for an event
 * fails.
 */
async function printWatch(
  watch: Watch,
  printer: Printer,
  io: Io,
  exec: readonly string[],
): Promise<void> {
  try {
    for await (const response of watch) {
      if (response.canceled) io.stderr(`watch was canceled (${cancelText(response)})\n`);
      else if (response.events.length === 0)
        io.stdout(`progress notify: ${response.header?.revision ?? 0}\n`);
      printer.form(watchForm, response);
      if (exec.length > 0) await runForEvents(response, io, exec);
    }
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ClientError") throw error;
    io.stderr(`watch was canceled (${error.message})\n`);
  }
}

async function runForEvents(
  response: WatchResponse,
  io: Io,
  exec: readonly string[],
): Promise<void> {
  for (const bytes of response.events) {
    const event = Event.decode(bytes);
    const { key, value } = KeyValue.decode(defined(event.kv, "the kv"));
    const { error } = await io.run(exec, {
      ...io.env,
      ETCD_WATCH_REVISION: String(response.header?.revision ?? 0),
      ETCD_WATCH_EVENT_TYPE: `"${eventName(event.type)}"`,
      ETCD_WATCH_KEY: quoteBytes(key),
      ETCD_WATCH_VALUE: quoteBytes(value),
    }).ended;
    if (error !== undefined) {
      io.stderr(
        `command [${exec.map((word) => quoteBytes(fromUtf8(word))).join(" ")}] error (${error})\n`,
      );
      throw new Exit(ExitCode.error, "");
    }
  }
}

/** Runs the watch of a command line; resolves when the server ends it. Throws Exit. */
export async function watchPlan(
  client: Client,
  printer: Printer,
  io: Io,
  plan: WatchPlan,
  flags: FlagValues,
): Promise<void> {
  let watch: Watch;
  try {
    watch = openWatch(client, io, plan, flags);
  } catch (error) {
    throw badArguments((error as Error).message);
  }
  await untilStopped(
    io,
    () => watch.cancel(),
    () => printWatch(watch, printer, io, plan.exec),
  );
}

/**
 * Reads watches from standard input and prints their events until the input ends. Always throws
 * Exit.
 */
export async function watchInteractively(
  client: Client,
  printer: Printer,
  io: Io,
  variables: WatchVariables,
): Promise<never> {
  const { splitWords } = await import("./txn.ts");
  const lines = new LineReader(io.stdin);
  const watches = new Set<Watch>();
  const failed = Promise.withResolvers<never>();
  for (;;) {
    const line = await Promise.race([lines.next(), failed.promise]);
    if (line === undefined)
      throw new Exit(ExitCode.invalidInput, "error reading watch request line: EOF");
    const [name, ...words] = splitWords(line);
    if (name === "progress") {
      for (const watch of watches) watch.requestProgress();
    } else if (name !== "watch") {
      io.stderr(
        name === undefined
          ? `Invalid command: ${line} (watch and progress supported)\n`
          : `Invalid command ${line} (only support watch)\n`,
      );
    } else if (words.length === 0 && variables.key === "") {
      io.stderr(`Invalid command ${line} (command type or key is not provided)\n`);
    } else {
      const { plan, flags } = readLine(words, variables);
      try {
        const watch = openWatch(client, io, plan, flags);
        watches.add(watch);
        printWatch(watch, printer, io, plan.exec)
          .finally(() => watches.delete(watch))
          .catch(failed.reject);
      } catch (error) {
        io.stderr(`Invalid command ${line} (${(error as Error).message})\n`);
      }
    }
  }
}

/** Parses the words after "watch" in a line of interactive mode. Throws Exit. */
function readLine(
  words: readonly string[],
  variables: WatchVariables,
): { plan: WatchPlan; flags: FlagValues } {
  const declared = new Map(Object.entries(watchFlags));
  const flags = new FlagValues(declared);
  const args: string[] = [];
  let dash: number | undefined;
  try {
    readFlags(words, {
      flags: declared,
      flag: (name, text, shown) => flags.set(name, text, shown),
      argument: (text) => args.push(text),
      dashes: () => {
        dash = args.length;
      },
    });
  } catch (error) {
    if (error instanceof FlagError) throw badArguments(error.message);
    throw error;
  }
  return { plan: planWatch(args, dash, variables), flags };
}

/** The name of a kind of event. */
function eventName(type: number): string {
  return type === Event_EventType.DELETE ? "DELETE" : "PUT";
}

function decodeEvent(bytes: Uint8Array) {
  const { type, kv, prevKv } = Event.decode(bytes);
  return { type, kv: defined(kv, "the kv of an event"), prevKv };
}

const watchForm: Form<WatchResponse> = {
  simple: ({ events }, style) =>
    concat(
      events.map((bytes) => {
        const { type, kv, prevKv } = decodeEvent(bytes);
        return concat([
          fromUtf8(`${eventName(type)}\n`),
          recordLines(prevKv === undefined ? [kv] : [prevKv, kv], style),
        ]);
      }),
    ),
  fields: ({ events }, style) =>
    events.flatMap((bytes): FieldLine[] => {
      const { type, kv, prevKv } = decodeEvent(bytes);
      return [
        ["Type", eventName(type)],
        ...(prevKv === undefined ? [] : recordFields("Prev", prevKv, style)),
        ...recordFields("", kv, style),
      ];
    }),
  // Go's client has a type of its own for this, whose members have no JSON names and are never left
  // out.
  json: ({ header, events, compactRevision, canceled, created, cancelReason }) => ({
    Header: headerJson(header) ?? null,
    Events: events.map((bytes) => messageJson(Event.typeName, bytes)),
    CompactRevision: compactRevision,
    Canceled: canceled,
    Created: created,
    CancelReason: cancelReason,
  }),
  protobuf: ({ header, events, compactRevision, canceled, created }) =>
    WatchResponse.encode({ header, events, compactRevision, canceled, created }),
};
