/**
 * Logger over pino, on files and standard streams. A line as scripts read it (etcd's names in
 * etcd's order, then the caller's fields):
 *
 *     {"level":"info","ts":"2026-01-02T15:04:05.000Z","caller":"server/member","msg":"ready to
 *     serve client requests","name":"infra0"}
 *
 * and on a terminal:
 *
 *     2026-01-02T15:04:05.000Z info  server/member  ready to serve client requests  name=infra0
 *
 * The terminal format is a function of 15 lines instead of pino-pretty, which takes 19 ms and 12 MB
 * to load and would parse each line again.
 *
 * Each line is written before the call returns where its output takes it, so no line is lost when
 * the process ends or is killed. An output that takes nothing holds up no caller
 * (../src/log-output.ts).
 */
import { isatty } from "node:tty";
import pino from "pino";
import { type LogCounts, LogOutput } from "../src/log-output.ts";
import type { LogFields, Logger, LogLevel } from "../src/logger.ts";
import { escapeControls } from "../src/printable.ts";
import { fileTarget, nodeSurroundings, nonBlockingStream, streamTarget } from "./log-targets.ts";
import { type LogRotation, RotatingFile } from "./rotating-file.ts";

/** The format of a line. "auto": "console" on an output that is a terminal, "json" elsewhere. */
export type LogFormat = "json" | "console" | "auto";

export interface NodeLoggerOptions {
  /** Lines below this level are dropped; default "info". */
  readonly level?: LogLevel;
  /**
   * Where lines go: "stderr", "stdout", "default" (stderr) or the path of a file to append to.
   * Default stderr.
   */
  readonly outputs?: readonly string[];
  /** Default "auto". */
  readonly format?: LogFormat;
  /** When files among the outputs are moved away; never if undefined. */
  readonly rotation?: LogRotation | undefined;
}

/** A logger with the controls of its owner, which apply to its children too. */
export interface NodeLogger extends Logger {
  level(): LogLevel;
  setLevel(level: LogLevel): void;
  /** Reopens the log files by name, after log rotation has moved them. */
  reopen(): void;
  /** Lines that were dropped, and bytes that wait, over all outputs. */
  counts(): LogCounts;
  /**
   * Writes what waits, for at most two seconds, syncs the files to the disk and closes them.
   */
  close(): void;
}

const RANK: Readonly<Record<LogLevel, number>> = { debug: 20, info: 30, warn: 40, error: 50 };
const COLOURS: Readonly<Record<LogLevel, string>> = {
  debug: "\x1b[90m",
  info: "\x1b[32m",
  warn: "\x1b[33m",
  error: "\x1b[31m",
};
/** The caller of lines that no component writes: as with etcd, every line in JSON has one. */
const MAIN = "main";

/** What a writer of lines needs of its output. */
type Output = LogOutput | RotatingFile;
/** Takes a line: what the logger is bound to, and what the line has itself. */
export type WriteLine = (
  level: LogLevel,
  caller: string,
  msg: string,
  bound: LogFields,
  fields: LogFields | undefined,
) => void;

/** The state that a logger and its children share. */
interface Sink {
  rank: number;
  level: LogLevel;
  readonly writers: readonly WriteLine[];
}

/** The text of a value on a terminal: unquoted if unambiguous, else JSON. */
function valueText(
  value: string | number | boolean | readonly string[] | readonly number[],
): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}

/** The terminal format of a line, without its end. Control characters become \xNN or \uNNNN. */
export function formatForTerminal(
  time: Date,
  level: LogLevel,
  caller: string,
  msg: string,
  fields: LogFields,
  colours: boolean,
): string {
  const label = level.padEnd(5);
  let line = "";
  if (caller) line += `${caller}  `;
  line += msg;
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) line += `  ${name}=${valueText(value)}`;
  }
  return `${time.toISOString()} ${colours ? `${COLOURS[level]}${label}\x1b[39m` : label}  ${escapeControls(line)}`;
}

function consoleWriter(destination: Output, colours: boolean): WriteLine {
  return (level, caller, msg, bound, fields) => {
    destination.write(
      `${formatForTerminal(new Date(), level, caller, msg, { ...bound, ...fields }, colours)}\n`,
    );
  };
}

function jsonWriter(destination: Output): WriteLine {
  const log = pino(
    {
      level: "debug",
      base: null,
      timestamp: () => `,"ts":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  return (level, caller, msg, bound, fields) => {
    // The message is passed as a field: pino would put it behind the others.
    log[level]({ caller: caller || MAIN, msg, ...bound, ...fields });
  };
}

/** A logger that gives each line, of every level, to `write`. */
export function writtenLogger(caller: string, write: WriteLine): Logger {
  return new SinkLogger({ rank: RANK.debug, level: "debug", writers: [write] }, caller, {});
}

class SinkLogger implements Logger {
  protected readonly sink: Sink;
  readonly #caller: string;
  readonly #bound: LogFields;

  constructor(sink: Sink, caller: string, bound: LogFields) {
    this.sink = sink;
    this.#caller = caller;
    this.#bound = bound;
  }

  debug(msg: string, fields?: LogFields): void {
    this.#log("debug", msg, fields);
  }

  info(msg: string, fields?: LogFields): void {
    this.#log("info", msg, fields);
  }

  warn(msg: string, fields?: LogFields): void {
    this.#log("warn", msg, fields);
  }

  error(msg: string, fields?: LogFields): void {
    this.#log("error", msg, fields);
  }

  child(caller: string, fields?: LogFields): Logger {
    return new SinkLogger(this.sink, caller, { ...this.#bound, ...fields });
  }

  #log(level: LogLevel, msg: string, fields: LogFields | undefined): void {
    if (RANK[level] < this.sink.rank) return;
    for (const write of this.sink.writers) write(level, this.#caller, msg, this.#bound, fields);
  }
}

/** An output that lines go to. */
interface LogFile {
  readonly destination: LogOutput;
  readonly rotating: RotatingFile | undefined;
}

class RootLogger extends SinkLogger implements NodeLogger {
  readonly #files: readonly LogFile[];

  constructor(sink: Sink, files: readonly LogFile[]) {
    super(sink, "", {});
    this.#files = files;
  }

  level(): LogLevel {
    return this.sink.level;
  }

  setLevel(level: LogLevel): void {
    this.sink.level = level;
    this.sink.rank = RANK[level];
  }

  reopen(): void {
    for (const { rotating, destination } of this.#files) (rotating ?? destination).reopen();
  }

  counts(): LogCounts {
    let [droppedLines, queueBytes] = [0, 0];
    for (const { destination } of this.#files) {
      droppedLines += destination.droppedLines;
      queueBytes += destination.queueBytes;
    }
    return { droppedLines, queueBytes };
  }

  close(): void {
    for (const { destination } of this.#files) destination.close();
  }
}

/** The line that stands for those that an output has dropped. */
function missingLine(lines: number, isReadable: boolean, colours: boolean): string {
  const [time, msg] = [new Date(), "lines of the log were dropped: what reads it had stopped"];
  return isReadable
    ? `${formatForTerminal(time, "warn", MAIN, msg, { "dropped-lines": lines }, colours)}\n`
    : `{"level":"warn","ts":"${time.toISOString()}","caller":"${MAIN}","msg":"${msg}","dropped-lines":${lines}}\n`;
}

/**
 * A logger that writes to each of the outputs. Throws the system's error if a path cannot be
 * opened.
 */
export function nodeLogger(options: NodeLoggerOptions = {}): NodeLogger {
  const level = options.level ?? "info";
  const format = options.format ?? "auto";
  const files: LogFile[] = [];
  const writers = [...new Set(options.outputs ?? ["default"])].map((output) => {
    const stream =
      output === "stdout" ? 1 : output === "stderr" || output === "default" ? 2 : undefined;
    const isTerminal = stream !== undefined && isatty(stream);
    const isReadable = format === "console" || (format === "auto" && isTerminal);
    const destination = new LogOutput(
      stream === undefined ? fileTarget(output) : streamTarget(nonBlockingStream(stream)),
      (lines) => missingLine(lines, isReadable, isTerminal),
      nodeSurroundings,
    );
    const rotating =
      stream === undefined && options.rotation !== undefined
        ? new RotatingFile(output, options.rotation, destination)
        : undefined;
    files.push({ destination, rotating });
    const target = rotating ?? destination;
    return isReadable ? consoleWriter(target, isTerminal) : jsonWriter(target);
  });
  return new RootLogger({ rank: RANK[level], level, writers }, files);
}
