/**
 * A small scanner over TypeScript: it blanks comments and the insides of strings, so that a search
 * for a banned name finds code only. Offsets and line breaks stay as they were. It also lists the
 * regular expressions.
 */

/**
 * `text` with comments, string contents, template texts and regular expressions replaced by spaces.
 */
export function codeOnly(text: string): string {
  return scan(text, (piece) => piece.replace(/[^\n]/g, " "));
}

/** A regular expression in a text: where its first slash is, and what it consists of. */
export interface RegExpLiteral {
  readonly offset: number;
  readonly source: string;
  readonly flags: string;
}

/** The regular expressions of a text, in its order. */
export function regExpLiterals(text: string): RegExpLiteral[] {
  const found: RegExpLiteral[] = [];
  scan(text, (piece, kind, offset) => {
    if (kind === "regexp") {
      const flags = /^[a-z]*/.exec(text.slice(offset + piece.length + 1))![0];
      found.push({ offset: offset - 1, source: piece, flags });
    }
    return "";
  });
  return found;
}

/** `text` with its comments, but without what stands inside its literals; line breaks stay. */
export function withoutLiterals(text: string): string {
  return scan(text, (piece, kind) => (kind === "comment" ? piece : piece.replace(/[^\n]/g, "")));
}

type Kind = "comment" | "text" | "regexp";

function scan(text: string, hide: (piece: string, kind: Kind, offset: number) => string): string {
  const out: string[] = [];
  // Each open `${` of a template: how many braces are open inside it.
  const templates: number[] = [];
  let at = 0;
  const keep = (n: number): void => {
    out.push(text.slice(at, at + n));
    at += n;
  };
  const blank = (end: number, kind: Kind = "text"): void => {
    out.push(hide(text.slice(at, end), kind, at));
    at = end;
  };
  const templateText = (): void => {
    let end = at;
    while (end < text.length && text[end] !== "`" && !text.startsWith("${", end))
      end += text[end] === "\\" ? 2 : 1;
    blank(Math.min(end, text.length));
    if (text[at] === "`") keep(1);
    else if (at < text.length) {
      keep(2);
      templates.push(0);
    }
  };
  while (at < text.length) {
    const char = text[at];
    const depth = templates.length - 1;
    if (text.startsWith("//", at) || (at === 0 && text.startsWith("#!")))
      blank(lineEnd(text, at), "comment");
    else if (text.startsWith("/*", at)) blank(after(text, "*/", at + 2), "comment");
    else if (char === '"' || char === "'") {
      keep(1);
      blank(stringEnd(text, at, char));
      keep(1);
    } else if (char === "`") {
      keep(1);
      templateText();
    } else if (char === "/" && startsRegExp(out)) {
      keep(1);
      blank(regExpEnd(text, at), "regexp");
      keep(1);
    } else if (char === "{" && depth >= 0) {
      templates[depth]++;
      keep(1);
    } else if (char === "}" && depth >= 0) {
      keep(1);
      if (templates[depth] === 0) {
        templates.pop();
        templateText();
      } else templates[depth]--;
    } else keep(1);
  }
  return out.join("");
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

function after(text: string, mark: string, from: number): number {
  const end = text.indexOf(mark, from);
  return end === -1 ? text.length : end + mark.length;
}

function stringEnd(text: string, from: number, quote: string): number {
  let end = from;
  while (end < text.length && text[end] !== quote && text[end] !== "\n")
    end += text[end] === "\\" ? 2 : 1;
  return end;
}

function regExpEnd(text: string, from: number): number {
  let end = from;
  let inClass = false;
  while (end < text.length && text[end] !== "\n" && (inClass || text[end] !== "/")) {
    if (text[end] === "[") inClass = true;
    else if (text[end] === "]") inClass = false;
    end += text[end] === "\\" ? 2 : 1;
  }
  return end;
}

/**
 * A slash starts a regular expression where a value may stand: after an operator, an opening
 * bracket or a keyword.
 */
function startsRegExp(out: readonly string[]): boolean {
  const before = out.slice(-200).join("").trimEnd();
  return (
    before === "" ||
    /(?:[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|do|else|void|yield|await))$/.test(
      before,
    )
  );
}
