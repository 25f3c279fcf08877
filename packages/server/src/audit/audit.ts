/**
 * The audit log: one line for each call, written when it ends.
 *
 *     rpc -> audit.around(services) -> services        the verdict is the call's own status
 *              |
 *              +-> a line -> AuditSink                  bounded queue, no disk on the way
 *
 * A watch has a line when it is created or refused, and when it ends for want of permission; other
 * streams have one when they end.
 */
import { type Clock, trimEndOf } from "@quorate/host";
import {
  AuthService,
  ClusterService,
  defined,
  GrpcCode,
  KVService,
  LeaseService,
  MaintenanceService,
  services,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import {
  type CallContext,
  promised,
  type ServiceTable,
  type Status,
  StatusError,
  type UnaryHandler,
  type UnaryResponse,
} from "@quorate/rpc";
import { toStatusError } from "@quorate/services";
import { isReadOnlyTxn } from "@quorate/store";
import { KeyPlaces } from "./key-places.ts";
import { type AuditedCall, auditLine, type HashValue } from "./line.ts";
import { callerOfLine, LineWriter, type MethodLines, type PlainCall } from "./line-bytes.ts";
import { type CallOfLine, PendingCalls } from "./pending-calls.ts";
import { peekRevision, revisionAtHand } from "./response-head.ts";
import type { AuditSettings, AuditSink, ProvedIdentity } from "./settings.ts";
import { auditedStream } from "./streams.ts";
import { KEYS_FIRST, type KeyAccess, type Subject, subjectOf } from "./subjects.ts";
import { codeName, OK, statusOf, verdictOf } from "./verdict.ts";

export interface AuditDependencies {
  readonly clock: Clock;
  readonly sink: AuditSink;
  /** The identity by which a call was served; asked when the call ends. */
  identityOf(context: CallContext): ProvedIdentity | undefined;
  /** A keyed hash, so that a value cannot be found by trying. */
  readonly hashValue: HashValue;
}

const READS: ReadonlySet<string> = new Set<string>([
  KVService.methods.Range.path,
  KVService.methods.RangeStream.path,
  LeaseService.methods.LeaseTimeToLive.path,
  LeaseService.methods.LeaseLeases.path,
  ClusterService.methods.MemberList.path,
  MaintenanceService.methods.Status.path,
  MaintenanceService.methods.Hash.path,
  MaintenanceService.methods.HashKV.path,
]);

/** What changes nothing, so that it is not refused while lines cannot be written. */
const CHANGES_NOTHING: ReadonlySet<string> = new Set<string>([
  ...READS,
  AuthService.methods.AuthStatus.path,
  AuthService.methods.Authenticate.path,
  AuthService.methods.UserGet.path,
  AuthService.methods.UserList.path,
  AuthService.methods.RoleGet.path,
  AuthService.methods.RoleList.path,
]);

const METHODS: ReadonlySet<string> = new Set(
  services.flatMap(({ methods }) => Object.values(methods).map(({ path }) => path)),
);

export class Audit {
  readonly #settings: AuditSettings;
  readonly #dependencies: AuditDependencies;
  readonly #filter: KeyFilter;
  readonly #lines: LineWriter;
  readonly #plain: PlainCall = {
    endMs: 0,
    tookMs: 0,
    identity: undefined,
    address: "",
    certificate: undefined,
    subject: undefined,
    keys: new KeyPlaces(),
    revision: 0,
  };
  #reads = 0;
  /** Writes that were refused because lines could not be written. */
  refusedWrites = 0;

  constructor(settings: AuditSettings, dependencies: AuditDependencies) {
    this.#settings = settings;
    this.#dependencies = dependencies;
    this.#filter = new KeyFilter(settings.prefixes);
    this.#lines = new LineWriter(() => dependencies.clock.wallMs());
  }

  /**
   * The services, each of whose calls is logged. Health checks and reflection are not. Errors
   * become statuses here: one promise for each call does for that and for its line.
   */
  around({ unary, stream }: ServiceTable): ServiceTable {
    return {
      unary: new Map(
        [...unary].map(([path, handler]) => [
          path,
          METHODS.has(path) ? this.#unary(path, handler) : handler,
        ]),
      ),
      stream: new Map(
        [...stream].map(([path, handler]) => [
          path,
          METHODS.has(path) ? auditedStream(path, handler, this) : handler,
        ]),
      ),
    };
  }

  #unary(path: string, handler: UnaryHandler): UnaryHandler {
    const { clock } = this.#dependencies;
    const op = KEYS_FIRST.get(path);
    const isPlain = op !== undefined && this.#settings.level === "metadata" && this.#filter.isOpen;
    const lines = isPlain ? this.#lines.of(path, op) : undefined;
    const ends = {
      succeeded: (call: CallOfLine, response: UnaryResponse) =>
        this.#succeeded(call, response, lines, op !== "put"),
      failed: (call: CallOfLine, thrown: unknown): never => {
        const error = toStatusError(thrown);
        const subject = this.subjectOf(path, call.request);
        this.ended(call.context, call.startMs, subject, statusOf(error), 0);
        throw error;
      },
    };
    const pending = new PendingCalls(ends);
    return (request, context) => {
      const startMs = context.startedMs ?? clock.monotonicMs();
      let response: UnaryResponse | Promise<UnaryResponse>;
      try {
        this.#refuseWrite(path, request);
        response = promised(handler(request, context));
      } catch (error) {
        return ends.failed({ request, context, startMs }, error);
      }
      return response instanceof Promise
        ? pending.follow(response, request, context, startMs)
        : ends.succeeded({ request, context, startMs }, response);
    };
  }

  #succeeded(
    { request, context, startMs }: CallOfLine,
    response: UnaryResponse,
    lines: MethodLines | undefined,
    hasRange: boolean,
  ): UnaryResponse {
    const { path } = context;
    if (this.isLeftOut(path, request)) return response;
    const revision = lines === undefined ? undefined : revisionAtHand(response);
    if (revision !== undefined && this.#plain.keys.read(request, hasRange)) {
      this.#plain.revision = revision;
      if (this.#writePlain(defined(lines, "the lines"), context, startMs)) return response;
    }
    const [peeked, sent] = peekRevision(response);
    this.ended(context, startMs, this.subjectOf(path, request), OK, peeked);
    return sent;
  }

  /** Writes the line of a call whose keys and revision are noted; false where it is not plain. */
  #writePlain(lines: MethodLines, context: CallContext, startMs: number): boolean {
    const { clock, sink, identityOf } = this.#dependencies;
    const plain = this.#plain;
    plain.identity = identityOf(context);
    plain.address = context.peerAddress;
    plain.certificate = context.peerCommonName;
    plain.subject = context.peerSubject;
    plain.endMs = clock.monotonicMs();
    plain.tookMs = plain.endMs - startMs;
    return lines.write(plain, sink);
  }

  /** Logs a call, or a part of a stream, that has ended. */
  ended(
    context: CallContext,
    startMs: number,
    subject: Subject,
    status: Status,
    revision: number,
  ): void {
    if (!this.#filter.admits(subject.accesses)) return;
    const { clock, sink, identityOf, hashValue } = this.#dependencies;
    const { path, peerAddress: address, peerCommonName: certificate, peerSubject } = context;
    const identity = identityOf(context);
    const call: AuditedCall = {
      wallMs: clock.wallMs(),
      caller: callerOfLine({ identity, address, certificate, subject: peerSubject }),
      path,
      subject,
      revision,
      verdict: verdictOf(status),
      code: codeName(status.code),
      tookMs: clock.monotonicMs() - startMs,
    };
    sink.write(auditLine(call, this.#settings.level === "request" ? hashValue : undefined));
  }

  /** What a request is about, in as much detail as lines show. */
  subjectOf(path: string, request: Uint8Array): Subject {
    return subjectOf(path, request, this.#settings.level === "request");
  }

  /** The monotonic time, for streams. */
  nowMs(): number {
    return this.#dependencies.clock.monotonicMs();
  }

  /** Whether a read that succeeded is not the one that is logged of so many. */
  isLeftOut(path: string, request: Uint8Array): boolean {
    const { readSampling } = this.#settings;
    if (readSampling === 1 || !isRead(path, request)) return false;
    this.#reads++;
    return this.#reads % readSampling !== 1;
  }

  /** @throws StatusError for a write while lines cannot be written and writes are to be refused */
  #refuseWrite(path: string, request: Uint8Array): void {
    if (this.#settings.onFailure === "drop" || this.#dependencies.sink.isWritable) return;
    if (CHANGES_NOTHING.has(path) || isRead(path, request)) return;
    this.refusedWrites++;
    // Another member may have space on its disk.
    throw new StatusError(GrpcCode.Unavailable, "etcdserver: the audit log cannot be written");
  }
}

function isRead(path: string, request: Uint8Array): boolean {
  if (READS.has(path)) return true;
  if (path !== KVService.methods.Txn.path) return false;
  try {
    return isReadOnlyTxn(TxnRequest.decode(request));
  } catch {
    return false;
  }
}

/** Which calls are about keys that the audit log is for. */
export class KeyFilter {
  readonly #ranges: readonly (readonly [start: string, end: string | undefined])[];

  /** @param prefixes of keys; none for all keys */
  constructor(prefixes: readonly Uint8Array[]) {
    this.#ranges = prefixes.map((prefix) => {
      const start = toLatin1(prefix);
      return [start, afterPrefix(start)] as const;
    });
  }

  /** True where every call is logged. */
  get isOpen(): boolean {
    return this.#ranges.length === 0;
  }

  /** Whether a call with these keys is logged; one without keys always is. */
  admits(accesses: readonly KeyAccess[]): boolean {
    return this.isOpen || accesses.length === 0 || accesses.some(this.#isNear);
  }

  readonly #isNear = ({ key, end }: KeyAccess): boolean => {
    const from = toLatin1(key);
    const to = toLatin1(end);
    return this.#ranges.some(([start, stop]) => {
      if (stop !== undefined && from >= stop) return false;
      if (to === "") return from >= start;
      return to === "\0" || to > start;
    });
  };
}

/** The first key after those with a prefix; undefined where there is none. */
function afterPrefix(prefix: string): string | undefined {
  const kept = trimEndOf(prefix, "\xff");
  if (kept === "") return undefined;
  const last = kept.charCodeAt(kept.length - 1);
  return kept.slice(0, -1) + String.fromCharCode(last + 1);
}
