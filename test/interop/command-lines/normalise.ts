/**
 * What must differ between two runs of one command line is made equal, by few rules: names stand
 * for what a cluster has of its own (endpoints, ids, directories), and times, sizes, terms and
 * indexes become words. Everything else is compared as it is.
 */

/** A rule: what is looked for, and what it becomes. */
interface Rule {
  readonly why: string;
  readonly pattern: RegExp;
  readonly becomes: string;
}

const rules: readonly Rule[] = [
  {
    why: "the client library's log, on standard error",
    pattern: /^(?:\{"level":|\d{4}-\d\d-\d\d[T ].*(?:\t(?:info|warn)\t| [IW] \| )).*\n/gm,
    becomes: "",
  },
  {
    why: "a fatal line of etcdctl 3.4's log",
    pattern: /^\d{4}-\d\d-\d\d [\d:.]+ C \| [\w/]+: /gm,
    becomes: "Error: ",
  },
  {
    why: "usage after a mistake",
    pattern: /^(?:Run '|NAME:|Usage:)[\s\S]*?(?=^Error: |(?![\s\S]))/gm,
    becomes: "",
  },
  { why: "a crash's stack", pattern: /^goroutine \d+ [\s\S]*/gm, becomes: "" },
  {
    why: "the crash of etcdctl 3.4 after it has named a database that is not there: one of two, by chance",
    pattern:
      /^panic: (?:cannot open database at .*|runtime error: invalid memory address or nil pointer dereference)\n(?:\[signal .*\n)?\n?/gm,
    becomes: "panic\n",
  },
  {
    why: "a snapshot's hash",
    pattern: /^([|│]? *)[0-9a-f]{5,8}(?= *[,|│] *\d+ *[,|│] *\d+ *[,|│] )/gm,
    becomes: "$1{hash}",
  },
  {
    why: "a snapshot's hash",
    pattern: /("hash" ?: ?)\d+(?=,?\n?"revision")/gi,
    becomes: "$1{hash}",
  },
  {
    why: "the term in a protobuf header",
    pattern: /^( *2: \{\w+\}\n(?: *3: \d+\n)? *4: )\d+$/gm,
    becomes: "$1{number}",
  },
  {
    why: "what lies behind a deadline, which etcdctl writes to its log",
    pattern: /^Warning: (?:http|\{).*\n/gm,
    becomes: "",
  },
  {
    why: "what restore made, which etcdutl writes to its log",
    pattern: /^Restored .*\n/gm,
    becomes: "",
  },
  { why: "an error that etcdutl says twice", pattern: /^(Error: .*\n)\1/gm, becomes: "$1" },
  {
    why: "the client library's log",
    pattern: /^Warning: unrecognized environment variable .*\n/gm,
    becomes: "",
  },
  {
    why: "the size of a message, which has ids in it",
    pattern: /\(\d+ vs\. /g,
    becomes: "({bytes} vs. ",
  },
  {
    why: "one or two blanks, which Go's protobuf library chooses when a program is built",
    pattern: /(memberID:\S+) {1,2}(?=alarm:)/g,
    becomes: "$1 ",
  },
  { why: "time taken", pattern: /(took\W{1,5})\d[\d.hm]*[nµm]?s/gi, becomes: "$1{time}" },
  { why: "time taken, in tables", pattern: /\b\d+\.\d+(?:ns|µs|ms|s)\b/g, becomes: "{time}" },
  { why: "bytes", pattern: /\b\d+(?:\.\d+)? [kMG]?B\b/g, becomes: "{size}" },
  { why: "bytes", pattern: /("(?:db|total)?size(?:InUse)?" ?: ?)\d+/gi, becomes: "$1{size}" },
  { why: "unused share", pattern: /\b\d+%/g, becomes: "{percent}" },
  {
    why: "terms and indexes",
    pattern: /("raft_?(?:term|index|appliedindex)" ?: ?)\d+/gi,
    becomes: "$1{number}",
  },
  {
    why: "term, index and applied index side by side",
    pattern: /([,|│]) *\d+ *\1 *\d+ *\1 *\d+ *(?=\1)/g,
    becomes: "$1 {term} $1 {index} $1 {index} ",
  },
  { why: "seconds left", pattern: /(remaining\(|"ttl" ?: ?)-?\d+/gi, becomes: "$1{ttl}" },
  {
    why: "releases",
    pattern: /(?<![\d.])[03]\.\d+\.\d+(?:[-+][\w.+]+)?(?![\d.])/g,
    becomes: "{version}",
  },
  { why: "releases", pattern: /^(API version: )\d\.\d+$/gm, becomes: "$1{version}" },
  { why: "ids in hexadecimal", pattern: /\b(?=\d*[a-f])[0-9a-f]{12,16}\b/g, becomes: "{id}" },
  { why: "ids in decimal", pattern: /\b\d{15,20}\b/g, becomes: "{id}" },
  {
    why: "the width of ids",
    pattern: / +(?=\{(?:cluster|member\d|added|id|lease\d*)\})/g,
    becomes: " ",
  },
  { why: "long values", pattern: /x{100,}/g, becomes: "{long}" },
  { why: "the width of tables", pattern: /(?<=^[+|│┌├└].*)(?: {2,}|-{2,}|─{2,})/gm, becomes: " " },
  { why: "the rules of tables", pattern: /(?<=^[+|│┌├└].*)[-─]+/gm, becomes: "-" },
];

/**
 * Names of what a cluster has of its own, such as ["127.0.0.1:4711", "{address0}"]; words are
 * replaced as whole words.
 */
export type Names = readonly (readonly [text: string, name: string])[];

/** Output as it is compared. Names of programs become etcdctl's and etcdutl's. */
export function normalise(output: string, names: Names): string {
  let text = output.replaceAll("quoratectl", "etcdctl").replaceAll("quorateutl", "etcdutl");
  for (const [own, name] of [...names].sort(([a], [b]) => b.length - a.length)) {
    text = /^\w+$/.test(own)
      ? text.replace(new RegExp(`\\b${own}\\b`, "g"), name)
      : text.replaceAll(own, name);
  }
  for (const { pattern, becomes } of rules) text = text.replace(pattern, becomes);
  text = sortedMembers(text);
  return text.replace(
    /[^\n\t\x20-\uffff]/g,
    (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

/** Members in lists stand in the order of their ids, which is chance for one that was added. */
function sortedMembers(text: string): string {
  const sorted = (list: string, separator: string): string =>
    list.split(separator).sort().join(separator);
  return text
    .replace(/(?<=^ETCD_INITIAL_CLUSTER=")[^"]*/gm, (list) => sorted(list, ","))
    .replace(/(?<="members":\[\{).*(?=\}\])/g, (list) => sorted(list, "},{"))
    .replace(
      /(?:^[^\n]*, (?:un)?started, [^\n]*\n)+/gm,
      (list) => `${sorted(list.trimEnd(), "\n")}\n`,
    );
}

/**
 * A protobuf message as text, so that the rules apply to it: one field a line, messages indented.
 */
export function showMessage(bytes: Uint8Array, indent = ""): string {
  const fields = readFields(bytes);
  if (fields === undefined) return `${indent}bytes ${Buffer.from(bytes).toString("latin1")}\n`;
  return fields
    .map(({ number, value }) => {
      if (typeof value === "bigint") return `${indent}${number}: ${value}\n`;
      // Whatever reads as a message of known field numbers is shown as one; texts do not.
      const nested = readFields(value);
      if (nested !== undefined && nested.length > 0 && nested.every((one) => one.number <= 16)) {
        return `${indent}${number}:\n${showMessage(value, `${indent}  `)}`;
      }
      return `${indent}${number}: ${JSON.stringify(Buffer.from(value).toString("latin1"))}\n`;
    })
    .join("");
}

interface Field {
  readonly number: number;
  readonly value: bigint | Uint8Array;
}

/** The fields of a message, or undefined if it is none. */
function readFields(bytes: Uint8Array): Field[] | undefined {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): bigint | undefined => {
    let value = 0n;
    for (let shift = 0n; at < bytes.length && shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return undefined;
  };
  while (at < bytes.length) {
    const tag = varint();
    if (tag === undefined || tag < 8n) return undefined;
    const number = Number(tag >> 3n);
    const value = varint();
    if (value === undefined) return undefined;
    if ((tag & 7n) === 0n) fields.push({ number, value });
    else if ((tag & 7n) === 2n && at + Number(value) <= bytes.length)
      fields.push({ number, value: bytes.subarray(at, (at += Number(value))) });
    else return undefined;
  }
  return fields;
}
