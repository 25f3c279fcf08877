/**
 * What came of command lines, as text that a person can read, keep and compare:
 *
 *     == get: one key
 *     $ get a            the line; "#2" after it where a scenario has it for the second time
 *     exit 0
 *     > a                standard output ("~" in place of the blank: the last line is not ended)
 *     ! Error: ...       standard error
 */

/** What came of one command line, normalised. */
export interface Outcome {
  readonly exit: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Outcomes by scenario and line. */
export type Transcript = ReadonlyMap<string, ReadonlyMap<string, Outcome>>;

/** The transcript as text, under a heading of comment lines. */
export function formatTranscript(transcript: Transcript, heading: string): string {
  let out = heading;
  for (const [scenario, lines] of transcript) {
    out += `\n== ${scenario}\n`;
    for (const [line, { exit, stdout, stderr }] of lines)
      out += `$ ${line}\nexit ${exit}\n${marked(">", stdout)}${marked("!", stderr)}`;
  }
  return out;
}

function marked(mark: string, text: string): string {
  const lines = text.split("\n");
  const open = lines.pop()!;
  return (
    lines.map((line) => `${mark} ${line}\n`).join("") + (open === "" ? "" : `${mark}~${open}\n`)
  );
}

/** Reads what formatTranscript wrote. */
export function parseTranscript(text: string): Transcript {
  const transcript = new Map<string, Map<string, Outcome>>();
  let lines = new Map<string, Outcome>();
  let outcome = { exit: "", stdout: "", stderr: "" };
  for (const line of text.split("\n")) {
    const tail = line.slice(2) + (line[1] === "~" ? "" : "\n");
    if (line.startsWith("== ")) transcript.set(line.slice(3), (lines = new Map()));
    else if (line.startsWith("$ "))
      lines.set(line.slice(2), (outcome = { exit: "", stdout: "", stderr: "" }));
    else if (line.startsWith("exit ")) outcome.exit = line.slice(5);
    else if (line.startsWith(">")) outcome.stdout += tail;
    else if (line.startsWith("!")) outcome.stderr += tail;
  }
  return transcript;
}
