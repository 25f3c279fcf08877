/** Bugs in ranges that are read in parts, and in a member's first election (planted-sources.ts). */
import type { SourceBug } from "../source-bug.ts";

export const STREAM_BUGS = {
  "parts-of-several-revisions": {
    file: "services/src/v3/range-stream.ts",
    before: "const pinnedAt = at > 0 ? at : headerRevision;",
    after: "const pinnedAt = at;",
  },
  "part-repeats-a-key": {
    file: "services/src/v3/range-stream.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: source text with a template in it
    before: "key: `${last}\\0` };",
    after: "key: last };",
  },
  "parts-beyond-the-limit": {
    file: "services/src/v3/range-stream.ts",
    before: "const limit = Math.min(progress.chunkKeys, left);",
    after: "const limit = left > 0 ? progress.chunkKeys : 0;",
  },
  "advance-despite-a-leader": {
    file: "raft/src/machine.ts",
    before: 'if (this.role === "follower" && this.leader === 0n) this.#electionElapsed += ticks;',
    after: 'if (this.role === "follower") this.#electionElapsed += ticks;',
  },
} as const satisfies Readonly<Record<string, SourceBug>>;
