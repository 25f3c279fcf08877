/**
 * Conversion by a webhook (apiextensions-apiserver: pkg/apiserver/conversion/webhook_converter.go).
 *
 *     ConversionReview{request: uid, desiredAPIVersion, objects}  ->  {response: convertedObjects}
 *
 * The webhook converts everything but metadata; of that it may change labels and annotations.
 */

import { type Clock, Pauses } from "@quorate/host";
import {
  ApiError,
  isObject,
  type JsonObject,
  JsonSyntaxError,
  type KubeObject,
  kubeObjectOf,
  parseApiVersion,
  parseJsonInSlices,
  validateAnnotations,
  validateLabels,
} from "@quorate/kube-storage";
import { defined, fromUtf8, toUtf8 } from "@quorate/proto";
import {
  WebhookCallError,
  type WebhookCaller,
  type WebhookClientConfig,
} from "../../admission/webhook-caller.ts";
import type { Converter } from "./converter.ts";

/** Kubernetes waits as long. */
export const CONVERSION_TIMEOUT_MS = 30_000;
/** Objects in one call; more are sent in several calls, one after the other. */
export const MAX_OBJECTS_PER_CALL = 250;

/** Characters of the objects of one call, unless one object alone is longer. */
export const MAX_CHARS_PER_CALL: number = 2 * 1024 * 1024;

export interface WebhookConverterOptions {
  readonly config: WebhookClientConfig;
  /** The first of these that is known is spoken. */
  readonly reviewVersions: readonly string[];
}

export interface WebhookConverterDeps {
  readonly caller: WebhookCaller;
  readonly clock: Pick<Clock, "turns">;
  newUid(): string;
}

type Review = { readonly response?: JsonObject } & Readonly<Record<string, unknown>>;

export class WebhookConverter implements Converter {
  readonly #options: WebhookConverterOptions;
  readonly #deps: WebhookConverterDeps;

  constructor(options: WebhookConverterOptions, deps: WebhookConverterDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  convert(
    objects: readonly KubeObject[],
    apiVersion: string,
  ): readonly KubeObject[] | Promise<readonly KubeObject[]> {
    const others = objects.filter((object) => object.apiVersion !== apiVersion);
    return others.length === 0 ? objects : this.#converted(objects, others, apiVersion);
  }

  async #converted(
    objects: readonly KubeObject[],
    others: readonly KubeObject[],
    apiVersion: string,
  ): Promise<readonly KubeObject[]> {
    const results: KubeObject[] = [];
    let part: KubeObject[] = [];
    let texts: string[] = [];
    let chars = 0;
    const flush = async (): Promise<void> => {
      for (const one of await this.#call(part, texts, apiVersion)) results.push(one);
      part = [];
      texts = [];
      chars = 0;
    };
    const slices = new Pauses(this.#deps.clock.turns);
    for (const object of others) {
      const text = JSON.stringify(object);
      if (part.length === MAX_OBJECTS_PER_CALL) await flush();
      else if (part.length > 0 && chars + text.length > MAX_CHARS_PER_CALL) await flush();
      part.push(object);
      texts.push(text);
      chars += text.length;
      await slices.next();
    }
    await flush();
    const converted = results.values();
    return objects.map((object) =>
      object.apiVersion === apiVersion
        ? object
        : defined(converted.next().value, "a converted object"),
    );
  }

  async #call(
    objects: readonly KubeObject[],
    texts: readonly string[],
    apiVersion: string,
  ): Promise<KubeObject[]> {
    const shown = shownKind(defined(objects[0], "an object"));
    const version = this.#options.reviewVersions.find((one) => one === "v1" || one === "v1beta1");
    if (version === undefined) throw failure("no supported conversion review versions");
    const uid = this.#deps.newUid();
    const head = JSON.stringify({
      kind: "ConversionReview",
      apiVersion: `apiextensions.k8s.io/${version}`,
      request: { uid, desiredAPIVersion: apiVersion, objects: [] },
    });
    // The objects are texts already; they belong between the brackets at the end.
    const review = `${head.slice(0, -"]}}".length)}${texts.join(",")}]}}`;
    const response = await this.#post(review, shown);
    const converted = convertedObjects(response, version, uid, shown);
    if (converted.length !== objects.length) {
      const counts = `returned ${converted.length} objects, expected ${objects.length}`;
      throw failure(`conversion webhook for ${shown} ${counts}`);
    }
    return objects.map((object, i) => checked(object, converted[i], apiVersion, i));
  }

  async #post(review: string, shown: string): Promise<Review> {
    const body = fromUtf8(review);
    const { config } = this.#options;
    try {
      const call = { config, body, timeoutMs: CONVERSION_TIMEOUT_MS };
      const { status, body: answer } = await this.#deps.caller.call(call);
      const text = toUtf8(answer);
      if (status < 200 || status > 299) {
        const why = text === "" ? `status ${status}` : text.slice(0, 1024);
        throw failure(`conversion webhook for ${shown} failed: ${why}`);
      }
      const value = await parseJsonInSlices(text, this.#deps.clock);
      return isObject(value) ? (value as Review) : {};
    } catch (error) {
      if (!(error instanceof WebhookCallError) && !(error instanceof JsonSyntaxError)) throw error;
      throw failure(`conversion webhook for ${shown} failed: ${error.message}`);
    }
  }
}

function failure(message: string): ApiError {
  return new ApiError(500, "", message);
}

/** "example.org/v1, Kind=Widget", as Go shows a group, version and kind. */
function shownKind({ apiVersion, kind }: KubeObject): string {
  return `${apiVersion}, Kind=${kind}`;
}

/** Characters of a webhook's text that an error has. */
const MAX_SHOWN_TEXT = 1024;

function textOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_SHOWN_TEXT) : "";
}

function convertedObjects(review: Review, version: string, uid: string, shown: string): unknown[] {
  const fail = (why: string) => failure(`conversion webhook for ${shown} failed: ${why}`);
  const { response } = review;
  if (version === "v1") {
    const [apiVersion, kind] = [textOf(review["apiVersion"]), textOf(review["kind"])];
    if (apiVersion !== "apiextensions.k8s.io/v1" || kind !== "ConversionReview") {
      const wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview";
      throw fail(`expected webhook response of ${wanted}, got ${apiVersion}, Kind=${kind}`);
    }
  }
  if (!isObject(response)) throw fail("no response provided");
  if (version === "v1" && response["uid"] !== uid) {
    const got = JSON.stringify(textOf(response["uid"]));
    throw fail(`expected response.uid=${JSON.stringify(uid)}, got ${got}`);
  }
  const result = isObject(response["result"]) ? response["result"] : {};
  const [status, message] = [textOf(result["status"]), textOf(result["message"])];
  if (status !== "Success") {
    throw fail(message !== "" ? message : `response.result.status was '${status}', not 'Success'`);
  }
  const { convertedObjects: converted } = response;
  return Array.isArray(converted) ? [...converted] : [];
}

/** The converted object with the metadata of the original. Throws ApiError. */
function checked(original: KubeObject, value: unknown, apiVersion: string, i: number): KubeObject {
  const shown = shownKind(original);
  const fail = (what: string, why: string) =>
    failure(`conversion webhook for ${shown} returned ${what} at index ${i}: ${why}`);
  const bad = "invalid converted object";
  if (!isObject(value)) throw fail(bad, "it is no object");
  const object = kubeObjectOf(value);
  if (object.apiVersion !== apiVersion) {
    const got = textOf(object.apiVersion);
    throw fail(bad, `invalid groupVersion (expected ${apiVersion}, received ${got})`);
  }
  if (object.kind !== original.kind) {
    throw fail(bad, `invalid kind (expected ${original.kind}, received ${textOf(object.kind)})`);
  }
  if (parseApiVersion(object.apiVersion) === undefined) throw fail(bad, "invalid apiVersion");
  const metadata = value["metadata"];
  if (!isObject(metadata)) throw fail("invalid metadata in object", METADATA_MISSING);
  // Server-side apply takes away what a manager applied, for a while the metadata as well.
  const own = (original["metadata"] ?? {}) as JsonObject;
  for (const [field, name] of SAME) {
    const [is, was] = [metadata[field] ?? "", own[field] ?? ""];
    if (is !== was) throw fail(bad, `must have the same ${name}: ${was} != ${textOf(is)}`);
  }
  const restored = restoredMetadata(own, metadata);
  if (typeof restored === "string") throw fail("invalid metadata in object", restored);
  return { ...object, metadata: restored };
}

const METADATA_MISSING = "missing metadata in converted object";
const SAME = [
  ["name", "name"],
  ["namespace", "namespace"],
  ["uid", "UID"],
] as const;

/** The original's metadata with the webhook's labels and annotations; a text if they are wrong. */
function restoredMetadata(own: JsonObject, metadata: JsonObject) {
  const restored: Record<string, unknown> = { ...own };
  for (const field of ["labels", "annotations"] as const) {
    const texts = metadata[field] ?? undefined;
    if (texts === undefined) {
      delete restored[field];
      continue;
    }
    if (!isObject(texts)) return `invalid metadata.${field} in converted object`;
    for (const [key, text] of Object.entries(texts)) {
      if (typeof text !== "string") {
        const why = `must be a string, but is ${typeof text} in converted object`;
        return `metadata.${field}[${key}] ${why}`;
      }
    }
    const map = texts as Readonly<Record<string, string>>;
    const errors =
      field === "labels"
        ? validateLabels(map, "metadata.labels")
        : validateAnnotations(map, "metadata.annotation");
    if (errors.length > 0) return errors.map((one) => `${one.field}: ${one.message}`).join(", ");
    restored[field] = map;
  }
  return restored as KubeObject["metadata"];
}
