/**
 * What holds for every streaming method (etcd: api/v3rpc/interceptor.go): who is admitted, how
 * errors end a call, and that a client which asks for a leader (metadata "hasleader") is cut off
 * when the cluster has had none for a while, so that it can go to another member.
 */
import type { Clock, Timer } from "@quorate/host";
import type { AuthChanges } from "@quorate/member";
import { errorOf } from "@quorate/proto";
import {
  type CallContext,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
  wrappedCall,
  wrappedListener,
} from "@quorate/rpc";
import { toStatusError } from "../calls/results.ts";
import { type RequestCheck, SMALL_REQUEST_BYTES } from "./request-work.ts";

/**
 * Streams live longer than calls and cost more to set up again: they are cut off only after so many
 * election timeouts without a leader.
 */
const MAX_CHECKS_WITHOUT_LEADER = 3;

export interface StreamGuardDeps {
  readonly clock: Clock;
  readonly electionTimeoutMs: number;
  hasLeader(): boolean;
  /** Throws an EtcdError for a call that is not to be. */
  admit(context: CallContext): void;
  /** Whether a method's calls are permitted as a whole, and so looked at again. */
  isRuled(path: string): boolean;
  /** Throws or rejects with an EtcdError for a call that its method's rule refuses. */
  admitByRule(context: CallContext): void | Promise<void>;
  /** Notifies of changes of users and roles. */
  readonly authChanges: AuthChanges;
}

/** Wraps the handlers of all streaming methods of one member. */
export class StreamGuard {
  readonly #deps: StreamGuardDeps;
  /** Calls that want a leader, and what they hear. */
  readonly #needLeader = new Map<StreamCall, StreamListener>();
  /** Calls that are looked at again when users or roles change, and what ends that. */
  readonly #followed = new Map<StreamCall, () => void>();
  #timer: Timer | undefined;
  #checksWithoutLeader = 0;

  constructor(deps: StreamGuardDeps) {
    this.#deps = deps;
  }

  /** @param check refuses messages that would take too long to decode */
  guard(handler: StreamHandler, check: RequestCheck): StreamHandler {
    return (call) => {
      const needsLeader = call.context.metadata("hasleader") === "true";
      const isFollowed = needsLeader || this.#deps.isRuled(call.context.path);
      let listener: StreamListener;
      try {
        this.#deps.admit(call.context);
        listener = handler(isFollowed ? this.#watched(call) : call);
      } catch (error) {
        throw toStatusError(error);
      }
      if (needsLeader) this.#watch(call, listener);
      this.#followRule(call, listener);
      return wrappedListener(listener, {
        message: (bytes) => {
          try {
            if (bytes.length > SMALL_REQUEST_BYTES) check(bytes);
            listener.message?.(bytes);
          } catch (error) {
            this.#forget(call);
            throw toStatusError(error);
          }
        },
        cancelled: () => {
          this.#forget(call);
          listener.cancelled?.();
        },
      });
    };
  }

  /** Ends a call when its method's rule refuses it after users or roles have changed. */
  #followRule(call: StreamCall, listener: StreamListener): void {
    const { isRuled, admitByRule, authChanges } = this.#deps;
    if (!isRuled(call.context.path)) return;
    const check = async () => admitByRule(call.context);
    const refused = () => {
      if (!this.#followed.has(call)) return;
      this.#forget(call);
      listener.cancelled?.();
      call.end(toStatusError(errorOf("PermissionDenied")));
    };
    const unfollow = authChanges.follow(() => void check().catch(refused));
    this.#followed.set(call, unfollow);
  }

  /** The call, forgotten when the handler ends it. */
  #watched(call: StreamCall): StreamCall {
    return wrappedCall(call, call.context, {
      end: (status) => {
        this.#forget(call);
        call.end(status);
      },
    });
  }

  #watch(call: StreamCall, listener: StreamListener): void {
    this.#needLeader.set(call, listener);
    this.#timer ??= this.#deps.clock.every(this.#deps.electionTimeoutMs, () => this.#check());
  }

  #forget(call: StreamCall): void {
    this.#followed.get(call)?.();
    this.#followed.delete(call);
    this.#needLeader.delete(call);
    if (this.#needLeader.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#checksWithoutLeader = 0;
  }

  #check(): void {
    this.#checksWithoutLeader = this.#deps.hasLeader() ? 0 : this.#checksWithoutLeader + 1;
    if (this.#checksWithoutLeader < MAX_CHECKS_WITHOUT_LEADER) return;
    const status = toStatusError(errorOf("NoLeader"));
    for (const [call, listener] of [...this.#needLeader]) {
      this.#forget(call);
      listener.cancelled?.();
      call.end(status);
    }
  }
}
