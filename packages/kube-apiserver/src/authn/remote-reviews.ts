/**
 * Reviews by a webhook, TokenReview and SubjectAccessReview (apiserver: pkg/util/webhook;
 * client-go: rest/request.go):
 *
 *     spec -> review -> POST -> review with a status      again, five times in all, where the other
 *                                                         side says that it is busy
 */
import { Backoff, type Clock, type Random, sleep } from "@quorate/host";
import {
  apiVersionOf,
  isObject,
  JsonSyntaxError,
  kindSource,
  parseJsonInSlices,
  parseYaml,
  type StatedKind,
  statedKind,
} from "@quorate/kube-storage";
import { CodedError, fromUtf8, quoteText as goQuote, toUtf8 } from "@quorate/proto";

/** Of authentication.k8s.io or authorization.k8s.io. */
export type RemoteReviewVersion = "v1" | "v1beta1";

export interface ReviewAnswer {
  readonly status: number;
  readonly contentType: string;
  /** Of the header Retry-After; "" without one. */
  readonly retryAfter: string;
  readonly body: Uint8Array;
}

/** Sends JSON to the webhook. Rejects with Error, in the words of Go's net/http. */
export type PostReview = (review: Uint8Array) => Promise<ReviewAnswer>;

/** A review that failed. Its message never holds what was asked. */
export class ReviewError extends CodedError<"Review"> {
  constructor(message: string) {
    super("ReviewError", "Review", message);
  }
}

/** Of one call. */
export const REVIEW_TIMEOUT_MS = 30_000;
/** A longer answer is refused: it is decoded in one go. */
export const MAX_REVIEW_BYTES: number = 64 * 1024;
/** Reviews of one kind that are under way. One more fails. */
export const MAX_RUNNING_REVIEWS = 512;
const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 2000;
/** Characters of an answer that an error has (client-go: maxUnstructuredResponseTextBytes). */
const MAX_SHOWN_CHARS = 2048;

export interface RemoteReviewOptions {
  readonly group: string;
  readonly kind: "TokenReview" | "SubjectAccessReview";
  /** Spoken to the webhook. */
  readonly version: RemoteReviewVersion;
}

export interface RemoteReviewDeps {
  readonly post: PostReview;
  readonly clock: Clock;
  readonly random: Random;
}

/** Why a review did not succeed, and whether it may the next time. */
interface Problem {
  readonly message: string;
  readonly mayPass: boolean;
}

export class RemoteReviews {
  readonly #options: RemoteReviewOptions;
  readonly #deps: RemoteReviewDeps;
  #running = 0;

  constructor(options: RemoteReviewOptions, deps: RemoteReviewDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  get version(): RemoteReviewVersion {
    return this.#options.version;
  }

  /** Resolves with the status, whose fields are of the kind's types. Rejects with ReviewError. */
  async review(spec: object, status: object): Promise<Readonly<Record<string, unknown>>> {
    if (this.#running >= MAX_RUNNING_REVIEWS) throw new ReviewError("too many reviews are asked");
    const { group, version, kind } = this.#options;
    const apiVersion = apiVersionOf({ group, version });
    const review = fromUtf8(JSON.stringify({ kind, apiVersion, metadata: {}, spec, status }));
    const pauses = { firstMs: FIRST_PAUSE_MS, mostMs: LONGEST_PAUSE_MS };
    const backoff = new Backoff(pauses, this.#deps.random);
    this.#running++;
    try {
      for (let attempt = 1; ; attempt++) {
        const result = await this.#once(review);
        if (!("message" in result)) return result.status;
        if (!result.mayPass || attempt === MAX_ATTEMPTS) throw new ReviewError(result.message);
        await sleep(this.#deps.clock, backoff.nextMs());
      }
    } finally {
      this.#running--;
    }
  }

  async #once(
    review: Uint8Array,
  ): Promise<Problem | { readonly status: Readonly<Record<string, unknown>> }> {
    let answer: ReviewAnswer;
    try {
      answer = await this.#deps.post(review);
    } catch (error) {
      const { message } = error as Error;
      // The connection was reset.
      return { message, mayPass: message.endsWith(": EOF") };
    }
    const { status, body, contentType } = answer;
    const text = toUtf8(body);
    if (status < 200 || status > 206) return await this.#failure(answer, text);
    if (text === "") {
      const of = `status code: ${status} and content type: ${contentType || "application/json"}`;
      return { message: `0-length response with ${of}`, mayPass: false };
    }
    try {
      return await this.#decoded(text);
    } catch (error) {
      return { message: (error as Error).message, mayPass: false };
    }
  }

  /** Rejects with Error for what is no such review. */
  async #decoded(
    text: string,
  ): Promise<Problem | { readonly status: Readonly<Record<string, unknown>> }> {
    const { group, version, kind } = this.#options;
    const value = await this.#parsed(text);
    const stated = statedKindOf(value);
    const name = stated.kind || kind;
    const apiVersion = stated.apiVersion || apiVersionOf({ group, version });
    const other = version === "v1" ? "v1beta1" : "v1";
    const isOther = name === kind && apiVersion === apiVersionOf({ group, version: other });
    if (isOther || (name === "Status" && apiVersion === "v1")) {
      const from = `${isOther ? other : "v1"}.${name}`;
      const message = `converting (${from}) to (${version}.${kind}): unknown conversion`;
      return { message, mayPass: false };
    }
    if (name !== kind || apiVersion !== apiVersionOf({ group, version })) {
      const what = `no kind ${goQuote(name)} is registered for version ${goQuote(apiVersion)}`;
      const where = "k8s.io/client-go/kubernetes/scheme/register.go:83";
      return { message: `${what} in scheme ${goQuote(where)}`, mayPass: false };
    }
    // Both versions have the same status; what was asked does not count in the answer.
    const { status = {} } = value as { readonly status?: unknown };
    return { status: decodedStatus(group, kind, status) };
  }

  async #parsed(text: string): Promise<unknown> {
    try {
      // As in client-go, a webhook may answer with YAML.
      if (!text.startsWith("{")) return (await parseYaml(text)).value;
      return await parseJsonInSlices(text, this.#deps.clock);
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error;
      throw new Error(`couldn't get version/kind; json parse error: ${error.message}`);
    }
  }

  /** A Status in the body says why; else the HTTP status does. */
  async #failure({ status, contentType, retryAfter }: ReviewAnswer, text: string) {
    const stated = await this.#parsed(text).then(problemOf, () => undefined);
    if (stated !== undefined) return stated;
    const isText = contentType === "" || contentType.startsWith("text/");
    const said = isText ? text.slice(0, MAX_SHOWN_CHARS).trim() : "unknown";
    const { message, isTransient } = genericFailure(status, said);
    return { message, mayPass: isTransient || /^[1-9][0-9]{0,8}$/.test(retryAfter) };
  }
}

/** With its fields' types. Throws Error in the words of Go's encoding/json. */
function decodedStatus(
  group: string,
  kind: string,
  status: unknown,
): Readonly<Record<string, unknown>> {
  try {
    const { object } = kindSource(group, "v1", kind).decode({ status });
    return (object["status"] ?? {}) as Readonly<Record<string, unknown>>;
  } catch (error) {
    // Before it stands what a client of this server would be told.
    const { message } = error as Error;
    throw new Error(message.slice(Math.max(0, message.indexOf("json: "))));
  }
}

function statedKindOf(value: unknown): StatedKind {
  try {
    return statedKind(value);
  } catch (error) {
    throw new Error(`couldn't get version/kind; json parse error: ${(error as Error).message}`);
  }
}

/** Reasons of a Status that may not be one the next time. */
const TRANSIENT = new Set(["InternalError", "Timeout", "TooManyRequests", "ServerTimeout"]);

/** The error in a metav1.Status that is a failure. */
function problemOf(value: unknown): Problem | undefined {
  if (!isObject(value) || value["status"] !== "Failure") return undefined;
  const { kind = "Status", message, reason, details } = value;
  if (kind !== "Status") return undefined;
  const isDelayed = isObject(details) && Number(details["retryAfterSeconds"]) > 0;
  return {
    message: typeof message === "string" ? message.slice(0, MAX_SHOWN_CHARS) : "",
    mayPass: TRANSIENT.has(String(reason)) || isDelayed,
  };
}

/** The texts of client-go by HTTP status (apimachinery: NewGenericServerResponse). */
const GENERIC: Readonly<Record<number, string>> = {
  400: "the server rejected our request for an unknown reason",
  401: "the server has asked for the client to provide credentials",
  404: "the server could not find the requested resource",
  405: "the server does not allow this method on the requested resource",
  409: "the server reported a conflict",
  422: "the server rejected our request due to an error in our request",
  429: "the server has received too many requests and has asked us to try again later",
  503: "the server is currently unable to handle the request",
  504: "the server was unable to return a response in the time allotted, but may still be processing the request",
};

function genericFailure(status: number, said: string) {
  const text = GENERIC[status];
  if (text !== undefined) return { message: text, isTransient: status === 429 || status === 504 };
  if (status === 403 || status === 415) return { message: said, isTransient: false };
  if (status === 406) {
    const unable = "the server was unable to respond with a content type that the client supports";
    return { message: said === "" || said === "unknown" ? unable : said, isTransient: false };
  }
  if (status >= 500) {
    const quoted = `(${goQuote(said)})`;
    const message = `an error on the server ${quoted} has prevented the request from succeeding`;
    return { message, isTransient: true };
  }
  const code = `the server responded with the status code ${status}`;
  return { message: `${code} but did not return more information`, isTransient: false };
}
