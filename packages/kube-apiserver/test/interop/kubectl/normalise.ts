/** Replaces what differs from run to run in kubectl's output. */

const RULES: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "<uid>"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>"],
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}/g, "<time>"],
  [/(resourceVersion"?: ?)"\d+"/g, '$1"<revision>"'],
  [/https?:\/\/(127\.0\.0\.1|localhost):\d+/g, "<server>"],
  [/(127\.0\.0\.1|localhost):\d+/g, "<server>"],
  [/\/\S*\/(LIVE|MERGED)-\d+\//g, "<$1>/"],
  [/\/\S*\/kubectl-edit-\S+/g, "<file>"],
  // Ages, and the spaces that fill their column.
  [/(^| {2,})(\d+(\.\d+)?(ms|s|m|h|d))+(?=\s|$)/gm, "$1<age>"],
  [/<age> +/g, "<age>  "],
  [/[ \t]+$/gm, ""],
  [/in \d+(\.\d+)?(ms|s)\b/g, "in <duration>"],
  [/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, "<token>"],
];

export function normalise(text: string): string {
  return RULES.reduce((so, [pattern, by]) => so.replace(pattern, by), text);
}
