/**
 * The version that clients say they have (metadata "client-api-version"), as a label of a metric.
 * A client may send any text: one that is not a version, or that comes when many versions are
 * known already, counts as "other".
 */

import type { Counter, Family } from "@quorate/metrics";
import type { CallContext } from "@quorate/rpc";

/** Versions that have a label of their own. */
export const MAX_CLIENT_VERSIONS = 32;
/** As long as a version with a pre-release and a build may reasonably be. */
const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+-]{0,31}$/;

type CallKind = "unary" | "stream";

export class ClientVersions {
  readonly #requests: Family<Counter>;
  /** The counters of the last version. */
  #unary: Counter | undefined;
  #stream: Counter | undefined;
  readonly #known = new Set<string>();
  /** The last one asked for: most calls come from clients of one version. */
  #last: string | undefined;
  #lastLabel = "unknown";

  /** @param requests counts calls by kind and version */
  constructor(requests: Family<Counter>) {
    this.#requests = requests;
  }

  /** The counter of a call. */
  counted(kind: CallKind, context: Pick<CallContext, "metadata">): Counter {
    const version = context.metadata("client-api-version");
    const before = this.#lastLabel;
    const label = this.label(version);
    if (label !== before) {
      this.#unary = undefined;
      this.#stream = undefined;
    }
    if (kind === "unary") return (this.#unary ??= this.#requests.with(kind, label));
    return (this.#stream ??= this.#requests.with(kind, label));
  }

  /** The label for what a client said; "unknown" if it said nothing. */
  label(version: string | undefined): string {
    if (version === this.#last) return this.#lastLabel;
    this.#lastLabel = this.#find(version);
    this.#last = version;
    return this.#lastLabel;
  }

  #find(version: string | undefined): string {
    if (version === undefined) return "unknown";
    if (this.#known.has(version)) return version;
    if (this.#known.size >= MAX_CLIENT_VERSIONS || !VERSION.test(version)) return "other";
    this.#known.add(version);
    return version;
  }
}
