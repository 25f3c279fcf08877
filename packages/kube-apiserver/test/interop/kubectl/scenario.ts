/**
 * Command lines of kubectl as text (scenarios.txt), and what they print (a transcript).
 *
 *     == apply: create and change       a scenario; its name is unique
 *     file app.yaml                     writes a file, up to "end"
 *     end
 *     $ apply -f app.yaml               a command line, without the program's name; quotes as in a
 *                                       shell
 *     $ KUBE_EDITOR='sed -i s/a/b/' edit cm app      with a variable
 *     & get cm -w --no-headers          runs while the next lines run
 *     until 1                           waits until it has printed so many lines
 *     stop 3                            ends it after so many lines, and takes its output
 *
 * All commands of a scenario run in a directory of its own. Each scenario runs on the same server.
 */

export interface Step {
  readonly kind: "file" | "run" | "background" | "until" | "stop";
  /** The command line, the name of the file, or the count of lines. */
  readonly text: string;
  /** Of a file. */
  readonly content: string;
}

export interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Reads scenarios. Throws Error that names the line which is wrong. */
export function parseScenarios(text: string): Scenario[] {
  const scenarios: { name: string; steps: Step[] }[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (line.trim() === "" || line.startsWith("#")) continue;
    const space = line.indexOf(" ");
    const [word, rest] = [line.slice(0, space), line.slice(space + 1)];
    if (word === "==") {
      scenarios.push({ name: rest, steps: [] });
      continue;
    }
    const steps = scenarios.at(-1)?.steps;
    const kinds = {
      file: "file",
      $: "run",
      "&": "background",
      until: "until",
      stop: "stop",
    } as const;
    const kind = kinds[word as keyof typeof kinds];
    if (kind === undefined || steps === undefined) throw new Error(`line ${at + 1}: ${line}`);
    let content = "";
    if (kind === "file") {
      for (at++; lines[at] !== "end"; at++) {
        if (at >= lines.length) throw new Error(`the file ${rest} has no end`);
        content += `${lines[at]}\n`;
      }
    }
    steps.push({ kind, text: rest, content });
  }
  return scenarios;
}

/** What a command line did. */
export interface Outcome {
  readonly line: string;
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The outcomes of a scenario as text. Lines of standard error begin with "! ". */
export function formatOutcomes(outcomes: readonly Outcome[]): string {
  const parts: string[] = [];
  for (const { line, exit, stdout, stderr } of outcomes) {
    parts.push(`$ ${line}`);
    for (const each of linesOf(stdout)) parts.push(`  ${each}`.trimEnd());
    for (const each of linesOf(stderr)) parts.push(`! ${each}`.trimEnd());
    if (exit !== 0) parts.push(`exit ${exit}`);
  }
  return `${parts.join("\n")}\n`;
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

/** A transcript: the texts of scenarios by their names. */
export function formatTranscript(texts: ReadonlyMap<string, string>): string {
  return [...texts].map(([name, text]) => `== ${name}\n${text}`).join("\n");
}

export function parseTranscript(text: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const part of text.split(/^== /m).slice(1)) {
    const end = part.indexOf("\n");
    texts.set(part.slice(0, end), `${part.slice(end + 1).trimEnd()}\n`);
  }
  return texts;
}
