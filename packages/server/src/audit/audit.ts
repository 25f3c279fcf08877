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
import type { Clock } from "@quorate/host";
import {
  AuthService,
  ClusterService,
  GrpcCode,
  KVService,
  LeaseService,
  MaintenanceService,
  services,
  TxnRequest,
} from "@quorate/proto";
import {
  type CallContext,
  type ServiceTable,
  type Status,
  StatusError,
  type UnaryHandler,
  type UnaryResponse,
} from "@quorate/rpc";
import { isReadOnlyTxn } from "@quorate/store";
import { KeyFilter } from "./key-filter.ts";
import { type AuditedCall, auditLine, type HashValue } from "./line.ts";
import { isPlainCall, LineWriter, type PlainCall } from "./line-bytes.ts";
import { peekRevision } from "./response-head.ts";
import type { AuditSettings, AuditSink } from "./settings.ts";
import { auditedStream } from "./streams.ts";
import { type KeyAccess, type Subject, subjectOf } from "./subjects.ts";
import { codeName, OK, statusOf, verdictOf } from "./verdict.ts";

/** The proved identity of a call's party; undefined for none. */
export interface ProvedIdentity {
  readonly user: string;
  readonly provedBy: string;
  /** The roles that a token lists. */
  readonly roles?: readonly string[] | undefined;
}

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
  readonly #lines = new LineWriter();
  #reads = 0;
  /** Writes that were refused because lines could not be written. */
  refusedWrites = 0;

  constructor(settings: AuditSettings, dependencies: AuditDependencies) {
    this.#settings = settings;
    this.#dependencies = dependencies;
    this.#filter = new KeyFilter(settings.prefixes);
  }

  /** The services, each of whose calls is logged. Health checks and reflection are not. */
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
    return (request, context) => {
      const startMs = clock.monotonicMs();
      const succeeded = (response: UnaryResponse): UnaryResponse => {
        if (this.isLeftOut(path, request)) return response;
        const [revision, sent] = peekRevision(response);
        this.ended(context, startMs, this.subjectOf(path, request), OK, revision);
        return sent;
      };
      const failed = (error: unknown): never => {
        this.ended(context, startMs, this.subjectOf(path, request), statusOf(error), 0);
        throw error;
      };
      let response: UnaryResponse | Promise<UnaryResponse>;
      try {
        this.#refuseWrite(path, request);
        response = handler(request, context);
      } catch (error) {
        return failed(error);
      }
      return response instanceof Promise ? response.then(succeeded, failed) : succeeded(response);
    };
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
    const identity = identityOf(context);
    const caller = {
      user: identity?.user ?? "",
      proof: identity?.provedBy ?? "",
      roles: identity?.roles,
      address: context.peerAddress,
      certificate: context.peerCommonName,
    };
    const wallMs = clock.wallMs();
    const tookMs = clock.monotonicMs() - startMs;
    const { path } = context;
    const access = this.#plainAccess(subject, status);
    if (access !== undefined && isPlainCall(access, revision, tookMs)) {
      this.#writePlain({ wallMs, tookMs, caller, path, access, revision });
      return;
    }
    const [verdict, code] = [verdictOf(status), codeName(status.code)];
    const call: AuditedCall = { wallMs, caller, path, subject, revision, verdict, code, tookMs };
    sink.write(auditLine(call, this.#settings.level === "request" ? hashValue : undefined));
  }

  /** The one thing that a call's line has beside its caller; undefined where there is more. */
  #plainAccess({ accesses, fields }: Subject, status: Status): KeyAccess | undefined {
    const isPlain = status === OK && accesses.length === 1 && this.#settings.level === "metadata";
    return isPlain && fields.length === 0 ? accesses[0] : undefined;
  }

  #writePlain(call: PlainCall): void {
    const { sink } = this.#dependencies;
    const space = sink.space(this.#lines.mostBytes(call));
    if (space !== undefined) sink.wrote(this.#lines.write(space, call));
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
