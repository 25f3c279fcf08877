/** Modules that are loaded with another source than their file has: planted bugs. */
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";

/** A change of a file's text. */
export interface SourceEdit {
  /** Absolute path. */
  readonly path: string;
  /** Offsets of what is replaced, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The text of the file with the change in it. */
export function edited(source: string, { start, end, text }: Omit<SourceEdit, "path">): string {
  return source.slice(0, start) + text + source.slice(end);
}

/**
 * From now on this thread loads the module of the file with the change in it. No file changes. To
 * be called before the module is loaded.
 */
export function plantEdit(edit: SourceEdit): void {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (!url.startsWith("file:") || fileURLToPath(url) !== edit.path) return loaded;
      const { source } = loaded;
      const text =
        typeof source === "string" ? source : new TextDecoder().decode(source as Uint8Array);
      return { ...loaded, source: edited(text, edit) };
    },
  });
}
