/**
 * The command that reads a transaction from standard input: comparisons, then operations if they
 * hold, then operations if not.
 */

import type { CommandBody } from "@quorate/cli";
import {
  badArguments,
  boolFlag,
  Exit,
  ExitCode,
  FlagError,
  type Flags,
  FlagValues,
  goUnquote,
  type Io,
  LineReader,
  parseBigInt64,
  readFlags,
  toSafeNumber,
} from "@quorate/cli";
import { type Compare, quoteBytes, type RequestOp, toUtf8 } from "@quorate/proto";
import { type ClientKit, withClient } from "../connect/globals.ts";
import { printerOf } from "../printers/choose.ts";
import { txnForm } from "../printers/kv-forms.ts";
import { delFlags, readDel } from "./del.ts";
import { getFlags, readGet } from "./get.ts";
import { putFlags, readPut } from "./put.ts";

type Build = ClientKit["build"];

/**
 * Lines up to an empty one, each parsed before the next is read. Throws Exit if the input ends
 * before.
 */
async function readBlock<T>(
  lines: LineReader,
  parse: (line: string) => T | Promise<T>,
): Promise<T[]> {
  const block: T[] = [];
  for (;;) {
    const line = (await lines.next())?.trim();
    if (line === undefined) throw new Exit(ExitCode.invalidInput, "EOF");
    if (line === "") return block;
    block.push(await parse(line));
  }
}

const comparisons = new Set(["=", "!=", "<", ">"]);

/** A comparison such as `mod("key") > "0"`. Throws Exit. */
export function parseCompare(line: string, build: Build): Compare {
  const malformed = (detail: string): Exit =>
    new Exit(ExitCode.invalidInput, `malformed comparison: ${line}${detail}`);
  const open = line.indexOf("(");
  if (open < 0) throw malformed("");
  const target = line.slice(0, open);
  const rest = line.slice(open + 1).trimStart();
  const key = goUnquote(rest);
  const behind = key === undefined ? "" : rest.slice(key.length);
  const middle = /^\)[ \t]+([^\s]*)[ \t]*/.exec(behind);
  const value = middle === null ? undefined : goUnquote(behind.slice(middle[0].length));
  if (key === undefined || middle === null || value === undefined) {
    throw malformed(
      `; got ${target}(${quoteBytes(key?.bytes ?? new Uint8Array(0))}) ${middle?.[1] ?? ""} ""`,
    );
  }
  const sign = middle[1] as "=";
  if (!comparisons.has(sign)) throw malformed(` (unknown operator ${sign})`);
  const number = (base: 10 | 16): bigint => {
    try {
      return parseBigInt64(toUtf8(value.bytes), base);
    } catch {
      throw new Exit(ExitCode.invalidInput, `invalid txn compare request: ${line}`);
    }
  };
  switch (target) {
    case "ver":
    case "version":
      return build.compareVersion(key.bytes, sign, toSafeNumber(number(10)));
    case "c":
    case "create":
      return build.compareCreateRevision(key.bytes, sign, toSafeNumber(number(10)));
    case "m":
    case "mod":
      return build.compareModRevision(key.bytes, sign, toSafeNumber(number(10)));
    case "val":
    case "value":
      return build.compareValue(key.bytes, sign, value.bytes);
    case "lease":
      return build.compareLease(key.bytes, sign, number(16));
    default:
      throw malformed(` (unknown target ${target})`);
  }
}

/**
 * Splits a line into words; quoted words may contain spaces, and in double quotes escapes. Throws
 * Exit.
 */
export function splitWords(line: string): string[] {
  const words =
    line.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[^'"\t\n\f\r ][^\t\n\f\r ]*[^'"\t\n\f\r ]?/g) ?? [];
  return words.map((word) => {
    if (word.startsWith("'")) return word.slice(1, -1);
    if (!word.startsWith('"')) return word;
    const unquoted = goUnquote(word);
    if (unquoted === undefined)
      throw new Exit(ExitCode.invalidInput, `cannot read the quoted text ${word}`);
    return toUtf8(unquoted.bytes);
  });
}

/**
 * An operation such as `put key "a value" --prev-kv`, parsed as the command of that name. Throws
 * Exit.
 */
export async function parseOperation(line: string, build: Build, io: Io): Promise<RequestOp> {
  const [name, ...words] = splitWords(line);
  if (name === undefined || words.length === 0)
    throw new Exit(ExitCode.invalidInput, `invalid txn compare request: ${line}`);
  const declared = ({ get: getFlags, put: putFlags, del: delFlags } as Record<string, Flags>)[name];
  if (declared === undefined) throw new Exit(ExitCode.invalidInput, `invalid txn request: ${line}`);
  const byName = new Map(Object.entries(declared));
  const flags = new FlagValues(byName);
  const args: string[] = [];
  try {
    readFlags(words, {
      flags: byName,
      flag: (flag, text) => flags.set(flag, text),
      argument: (text) => args.push(text),
    });
  } catch (error) {
    if (error instanceof FlagError)
      throw new Exit(ExitCode.invalidInput, `invalid txn request: ${line}`);
    throw error;
  }
  const invocation = { args, flags, io };
  if (name === "get") {
    const { key, options } = readGet(invocation);
    return build.opGet(key, options);
  }
  if (name === "put") {
    const { key, value, options } = await readPut(invocation);
    return build.opPut(key, value, options);
  }
  const { key, options } = await readDel(invocation);
  return build.opDelete(key, options);
}

export const txnCommand: CommandBody = {
  long: `Reads a transaction from standard input and runs it atomically.

Three blocks of lines, each ended by an empty line: comparisons, requests to run if all hold,
requests to run otherwise. A comparison is TARGET("KEY") OPERATOR "VALUE": targets are create, mod,
version, value and lease, operators =, !=, < and >.

  $ quoratectl txn -i
  compares:
  mod("key1") > "0"

  success requests (get, put, del):
  put key1 "overwritten"

  failure requests (get, put, del):
  put key1 "created"
  put key2 "some extra key"`,
  flags: {
    interactive: boolFlag("prompt for each block", "false", { shorthand: "i" }),
  },
  async run(invocation) {
    const { args, flags, io } = invocation;
    if (args.length > 0) throw badArguments("txn command does not accept argument");
    const printer = printerOf(invocation);
    const lines = new LineReader(io.stdin);
    const say = (prompt: string): void => {
      if (flags.bool("interactive")) io.stdout(`${prompt}\n`);
    };
    const response = await withClient(invocation, async ({ client, methods, build }) => {
      const operations = (): Promise<RequestOp[]> =>
        readBlock(lines, (line) => parseOperation(line, build, io));
      say("compares:");
      const compare = await readBlock(lines, (line) => parseCompare(line, build));
      say("success requests (get, put, del):");
      const success = await operations();
      say("failure requests (get, put, del):");
      const failure = await operations();
      await lines.close();
      return client.call(methods.txn, build.txnRequest({ compare, success, failure }), false);
    });
    printer.form(txnForm, response);
  },
};
