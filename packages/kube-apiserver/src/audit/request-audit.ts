/**
 * The record of one request on its way (apiserver: pkg/audit/context.go, request.go,
 * pkg/endpoints/filters/audit.go):
 *
 *     authenticated -> RequestReceived
 *     head of a watch's response -> ResponseStarted
 *     end of a response -> ResponseComplete
 *
 * Handlers report what they read and send; what the level does not want is not made into text.
 */
import type { KubeObject, Status, UserInfo } from "@quorate/kube-storage";
import { goJson } from "@quorate/kube-storage";
import type { AuditEvent, ObjectReference, RecordedStatus } from "./event-line.ts";
import { type AuditDecision, type AuditLevel, type AuditStage, atLeast } from "./policy.ts";
import { withoutManagedFields } from "./without-managed-fields.ts";

/** A longer body is left out of the event: making its text would hold the event loop. */
export const MAX_AUDIT_OBJECT_CHARS: number = 1024 * 1024;
/** Annotations of one event, and the characters of a value. Webhooks choose them. */
export const MAX_ANNOTATIONS = 128;
export const MAX_ANNOTATION_CHARS = 16 * 1024;
/** Says that a body was left out, as Kubernetes' truncating backend does. */
const TRUNCATED = "audit.k8s.io/truncated";

/** Takes an event at a stage; false where it cannot be kept. */
export type EventSink = (event: AuditEvent, stage: AuditStage) => boolean;

export class RequestAudit {
  readonly #event: AuditEvent;
  readonly #decision: AuditDecision;
  readonly #isLong: boolean;
  readonly #sink: EventSink;
  #isOver = false;
  /** Only the response's head is a stage: the request failed before it was served. */
  readonly #isEarly: boolean;

  /** @param isLong whether the head of its response is a stage of its own */
  constructor(
    event: AuditEvent,
    decision: AuditDecision,
    isLong: boolean | "early",
    sink: EventSink,
  ) {
    this.#event = event;
    this.#decision = decision;
    this.#isLong = isLong !== false;
    this.#isEarly = isLong === "early";
    this.#sink = sink;
  }

  /** Records a stage. False where the log cannot take it. */
  stage(stage: AuditStage): boolean {
    if (this.#decision.omitStages.includes(stage)) return true;
    return this.#sink(this.#event, stage);
  }

  wants(level: AuditLevel): boolean {
    return atLeast(this.#event.level, level);
  }

  /** @param constraint the constrained mode that allowed it, or "" */
  impersonated(user: UserInfo, constraint: string): void {
    this.#event.impersonatedUser = user;
    this.#event.impersonationConstraint = constraint;
  }

  /** The first value of a key stays. */
  annotate(key: string, value: string): void {
    const { annotations } = this.#event;
    if (annotations.has(key) || annotations.size >= MAX_ANNOTATIONS) return;
    annotations.set(key, value.slice(0, MAX_ANNOTATION_CHARS));
  }

  /** The object of a request, as decoded. @param sizeBytes of the request's body */
  request(object: KubeObject, sizeBytes: number): void {
    const { metadata } = object;
    const ref = this.#event.objectRef;
    if (ref !== undefined && metadata !== undefined) fillReference(ref, metadata);
    if (this.wants("Request")) this.#event.requestObject = this.#text(object, sizeBytes);
  }

  /** The options of a deletion, under the version that Kubernetes records for them. */
  requestOptions(options: object, sizeBytes: number): void {
    if (!this.wants("Request")) return;
    const head = { kind: "DeleteOptions", apiVersion: "meta.k8s.io/__internal" };
    this.#event.requestObject = this.#text({ ...head, ...options, ...head }, sizeBytes);
  }

  /** The patch of a request. @param value it is JSON's, also where it was sent as YAML */
  patch(value: unknown, sizeBytes: number): void {
    if (!this.wants("Request")) return;
    this.#event.requestObject = this.#text(value, sizeBytes, true);
  }

  /** A Status is the response. */
  status({ kind: _, apiVersion: __, metadata: ___, ...recorded }: Status): void {
    this.#event.responseStatus = recorded;
  }

  /** The object that is the response. */
  response(object: unknown): void {
    if (this.wants("RequestResponse")) this.#event.responseObject = this.#text(object, 0);
  }

  /** The response's text in JSON, or undefined for one that is too long. */
  responseText(text: string | undefined): void {
    if (text === undefined) this.annotate(TRUNCATED, "true");
    else this.#event.responseObject = text;
  }

  get omitsManagedFields(): boolean {
    return this.#decision.omitManagedFields;
  }

  /** The head of the response is out. */
  responded(code: number): void {
    const present = this.#event.responseStatus;
    this.#event.responseStatus = { ...present, code };
    if (this.#isLong) this.stage("ResponseStarted");
  }

  /** The response is complete or cut off. */
  completed(): void {
    if (this.#isOver || this.#isEarly) return;
    this.#isOver = true;
    if (this.#event.responseStatus === undefined) {
      const status: RecordedStatus = { status: "Success", message: "Connection closed early" };
      this.#event.responseStatus = { ...status, code: 200 };
      if (this.#isLong) this.stage("ResponseStarted");
    }
    this.stage("ResponseComplete");
  }

  #text(value: unknown, sizeBytes: number, isPatch = false): string | undefined {
    if (sizeBytes <= MAX_AUDIT_OBJECT_CHARS) {
      const omits = this.omitsManagedFields && !isPatch;
      const text = goJson(omits ? withoutManagedFields(value) : value);
      if (text.length <= MAX_AUDIT_OBJECT_CHARS) return text;
    }
    this.annotate(TRUNCATED, "true");
    return undefined;
  }
}

/** What the path did not say. */
function fillReference(ref: ObjectReference, metadata: KubeObject["metadata"]): void {
  ref.namespace ||= metadata.namespace ?? "";
  ref.name ||= metadata.name ?? "";
  ref.uid ||= metadata.uid ?? "";
  ref.resourceVersion ||= metadata.resourceVersion ?? "";
}
