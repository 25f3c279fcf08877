/** CSV as Go's encoding/csv reads it (RFC 4180, with empty lines skipped). */

/** @returns the records, or what is wrong with the text */
export function parseCsv(given: string): string[][] | string {
  // A carriage return at the very end belongs to no field, as in Go.
  const text = given.endsWith("\r") ? given.slice(0, -1) : given;
  const records: string[][] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    if (text[at] === "\n" || text.startsWith("\r\n", at)) {
      at += text[at] === "\n" ? 1 : 2;
      line++;
      continue;
    }
    const fields: string[] = [];
    for (;;) {
      const field = text[at] === '"' ? quotedField(text, at) : plainField(text, at);
      if (typeof field === "string") return `parse error on line ${line}: ${field}`;
      fields.push(field.value);
      line += field.value.split("\n").length - 1;
      at = field.end;
      if (text[at] !== ",") break;
      at++;
    }
    records.push(fields);
    if (text[at] === "\r") at++;
    if (text[at] === "\n") at++;
    line++;
  }
  return records;
}

interface Field {
  readonly value: string;
  readonly end: number;
}

function plainField(text: string, start: number): Field | string {
  let end = start;
  while (end < text.length && text[end] !== "," && text[end] !== "\n") end++;
  const stop = text[end] !== "," && text[end - 1] === "\r" && end > start ? end - 1 : end;
  const value = text.slice(start, stop);
  return value.includes('"') ? 'bare " in non-quoted field' : { value, end: stop };
}

function quotedField(text: string, start: number): Field | string {
  const parts: string[] = [];
  let at = start + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return 'extraneous or missing " in quoted field';
    parts.push(text.slice(at, quote));
    if (text[quote + 1] !== '"') {
      const end = quote + 1;
      const next = text[end];
      if (next !== undefined && next !== "," && next !== "\n" && !text.startsWith("\r\n", end)) {
        return 'extraneous or missing " in quoted field';
      }
      return { value: parts.join('"').replaceAll("\r\n", "\n"), end };
    }
    at = quote + 2;
  }
}
