/**
 * The last lines of a member's log, for the console. It stands around the member's logger: lines go
 * on to where they went before.
 */
import type { Clock, LogFields, Logger, LogLevel } from "@quorate/host";

/** Lines that are kept; beyond, the oldest is forgotten. */
export const MAX_LOG_LINES = 1000;
/** Characters of a line's fields that are kept. */
export const MAX_FIELD_CHARS = 1024;
/** Lines of one answer; the next ones are asked for by the number of the last. */
export const MAX_ANSWER_LINES = 200;

/** One line. */
export interface LogLine {
  /** Counts from 1. */
  readonly sequence: number;
  readonly wallMs: number;
  readonly level: LogLevel;
  readonly caller: string;
  readonly msg: string;
  /** The fields as JSON, cut at MAX_FIELD_CHARS. */
  readonly fields: string;
}

export class LogRing {
  readonly #clock: Pick<Clock, "wallMs">;
  readonly #lines: LogLine[] = [];
  #sequence = 0;

  constructor(clock: Pick<Clock, "wallMs">) {
    this.#clock = clock;
  }

  /** A logger whose lines are kept, but those of level "debug", and written by `logger`. */
  around(logger: Logger): Logger {
    return new KeptLogger(this, logger, "", {});
  }

  /** Keeps a line. */
  add(level: LogLevel, caller: string, msg: string, fields: LogFields): void {
    const text = JSON.stringify(fields).slice(0, MAX_FIELD_CHARS);
    const sequence = ++this.#sequence;
    const line = { sequence, wallMs: this.#clock.wallMs(), level, caller, msg, fields: text };
    // The place of a line is its number: the ring is full once there are MAX_LOG_LINES.
    this.#lines[(sequence - 1) % MAX_LOG_LINES] = line;
  }

  /** The first MAX_ANSWER_LINES lines after that number, oldest first. */
  after(sequence: number): LogLine[] {
    return this.#lines
      .filter((line) => line.sequence > sequence)
      .sort((a, b) => a.sequence - b.sequence)
      .slice(0, MAX_ANSWER_LINES);
  }
}

class KeptLogger implements Logger {
  readonly #ring: LogRing;
  readonly #logger: Logger;
  readonly #caller: string;
  readonly #bound: LogFields;

  constructor(ring: LogRing, logger: Logger, caller: string, bound: LogFields) {
    this.#ring = ring;
    this.#logger = logger;
    this.#caller = caller;
    this.#bound = bound;
  }

  debug(msg: string, fields?: LogFields): void {
    this.#logger.debug(msg, fields);
  }

  info(msg: string, fields?: LogFields): void {
    this.#keep("info", msg, fields);
    this.#logger.info(msg, fields);
  }

  warn(msg: string, fields?: LogFields): void {
    this.#keep("warn", msg, fields);
    this.#logger.warn(msg, fields);
  }

  error(msg: string, fields?: LogFields): void {
    this.#keep("error", msg, fields);
    this.#logger.error(msg, fields);
  }

  child(caller: string, fields?: LogFields): Logger {
    const bound = { ...this.#bound, ...fields };
    return new KeptLogger(this.#ring, this.#logger.child(caller, fields), caller, bound);
  }

  #keep(level: LogLevel, msg: string, fields: LogFields | undefined): void {
    this.#ring.add(level, this.#caller, msg, { ...this.#bound, ...fields });
  }
}
