/**
 * A small scanner over TypeScript: it blanks comments and the insides of strings, so that a search
 * for a banned name finds code only. Offsets and line breaks stay as they were.
 */

/**
 * `text` with comments, string contents, template texts and regular expressions replaced by spaces.
 */
export function codeOnly(text: string): string {
  return scan(text, (piece) => piece.replace(/[^\n]/g, " "));
}

/** `text` with its comments, but without what stands inside its literals; line breaks stay. */
export function withoutLiterals(text: string): string {
  return scan(text, (piece, comment) => (comment ? piece : piece.replace(/[^\n]/g, "")));
}

function scan(text: string, hide: (piece: string, comment: boolean) => string): string {
  const out: string[] = [];
  // Each open `${` of a template: how many braces are open inside it.
  const templates: number[] = [];
  let at = 0;
  const keep = (n: number): void => {
    out.push(text.slice(at, at + n));
    at += n;
  };
  const blank = (end: number, comment = false): void => {
    out.push(hide(text.slice(at, end), comment));
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
    if (text.startsWith("//", at)) blank(lineEnd(text, at), true);
    else if (text.startsWith("/*", at)) blank(after(text, "*/", at + 2), true);
    else if (char === '"' || char === "'") {
      keep(1);
      blank(stringEnd(text, at, char));
      keep(1);
    } else if (char === "`") {
      keep(1);
      templateText();
    } else if (char === "/" && startsRegExp(out)) {
      keep(1);
      blank(regExpEnd(text, at));
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
