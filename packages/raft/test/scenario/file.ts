/**
 * The form of a scenario file:
 *
 *     # Comments and blank lines stay as they are.
 *     > command argument ...
 *       what it answers, two spaces in
 *
 * An answer ends at the next line that is not indented.
 */

export interface Step {
  readonly command: string;
  readonly expected: string;
}

export type Part =
  | { readonly kind: "text"; readonly line: string }
  | { readonly kind: "step"; readonly step: Step };

/** The parts of a file, in order. */
export function parseScenario(text: string): Part[] {
  const parts: Part[] = [];
  const lines = text.replace(/\n$/, "").split("\n");
  for (let i = 0; i < lines.length; ) {
    const line = lines[i++];
    if (!line.startsWith("> ")) {
      if (line !== "" && !line.startsWith("#"))
        throw new Error(`line ${i}: neither comment nor command: ${line}`);
      parts.push({ kind: "text", line });
      continue;
    }
    const answer: string[] = [];
    while (i < lines.length && lines[i].startsWith("  ")) answer.push(lines[i++].slice(2));
    parts.push({ kind: "step", step: { command: line.slice(2), expected: answer.join("\n") } });
  }
  return parts;
}

/** The file with the results that `run` returns. */
export function rewriteScenario(parts: readonly Part[], run: (command: string) => string): string {
  const lines: string[] = [];
  for (const part of parts) {
    if (part.kind === "text") {
      lines.push(part.line);
      continue;
    }
    lines.push(`> ${part.step.command}`);
    const answer = run(part.step.command);
    if (answer !== "") for (const line of answer.split("\n")) lines.push(`  ${line}`);
  }
  return `${lines.join("\n")}\n`;
}
