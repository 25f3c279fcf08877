/** A planted bug in a member's source: one place of it, and what is to stand there. */
export interface SourceBug {
  /** Below packages/. */
  readonly file: string;
  readonly before: string;
  readonly after: string;
}
