/**
 * Manual pages as text in roff with the macros of man(7): sections, paragraphs, lists of terms. All
 * text is escaped here.
 */

/**
 * Text as it is to be read: backslashes, and dots and quotes that would begin a request, are made
 * harmless.
 */
function plain(text: string): string {
  return text.replaceAll("\\", "\\e").replace(/^([.'])/gm, "\\&$1");
}

/** Text that people copy: its dashes stay plain ones, not hyphens. */
function literal(text: string): string {
  return plain(text)
    .replaceAll("-", "\\-")
    .replaceAll("'", "\\(aq")
    .replaceAll("^", "\\(ha")
    .replaceAll("~", "\\(ti");
}

/** What stands in a request's line. */
function argument(text: string): string {
  return `"${text.replaceAll("\\", "\\e").replaceAll('"', '""')}"`;
}

/** A page that grows from the top. */
export class ManPage {
  readonly #lines: string[] = [];

  /** @param name the program's; @param section 1 for commands, 8 for what administrators run */
  constructor(name: string, section: number, source: string, manual: string) {
    this.#lines.push(
      `.TH ${argument(name.toUpperCase())} ${section} "" ${argument(source)} ${argument(manual)}`,
    );
    // Flags and paths are long words: lines that are filled to both ends would have holes.
    this.#lines.push(".nh", ".ad l");
  }

  /** The section that programs such as apropos read. */
  name(name: string, what: string): void {
    this.section("Name");
    this.#lines.push(`${literal(name)} \\- ${plain(what)}`);
  }

  section(title: string): void {
    this.#lines.push(`.SH ${argument(title.toUpperCase())}`);
  }

  subsection(title: string): void {
    this.#lines.push(`.SS ${argument(title).replaceAll("-", "\\-")}`);
  }

  /**
   * Paragraphs, each parted from the next by an empty line. Lines that begin with two spaces are
   * shown as they are.
   */
  text(text: string): void {
    for (const [i, part] of text.split("\n\n").entries()) {
      if (i > 0) this.#lines.push(".PP");
      let isShown = false;
      for (const line of part.split("\n")) {
        const show = line.startsWith("  ");
        if (show !== isShown) this.#lines.push(...(show ? [".RS 4", ".nf"] : [".fi", ".RE"]));
        isShown = show;
        this.#lines.push(show ? literal(line.trimStart()) : plain(line));
      }
      if (isShown) this.#lines.push(".fi", ".RE");
    }
  }

  /** A line in bold, such as how a command is written. */
  usage(text: string): void {
    const [program, ...rest] = text.split(" ");
    this.#lines.push(".PP", `\\fB${literal(program)}\\fR ${literal(rest.join(" "))}`);
  }

  paragraph(text: string): void {
    this.#lines.push(".PP");
    this.text(text);
  }

  /** A term in bold, what follows it in plain type, and below that what it means. */
  item(term: string, after: string, text: string): void {
    this.#lines.push(".TP", `\\fB${literal(term)}\\fR${literal(after)}`, plain(text));
  }

  /** The page. */
  toString(): string {
    return `${this.#lines.join("\n")}\n`;
  }
}
