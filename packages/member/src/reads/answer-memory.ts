/**
 * Memory of answers while they are built. Each client has a bound, and all together have one; where
 * that is reached, the client that holds most gives way, so that small answers go on beside large
 * ones.
 */
import { GrpcCode } from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import type { Budgets } from "../config/budgets.ts";

export interface AnswerLimits {
  /** Of all clients, of one, and of one answer. */
  readonly totalBytes: number;
  readonly clientBytes: number;
  readonly answerBytes: number;
}

/**
 * The limits within a member's budgets: an answer is not larger than what may wait for one
 * connection, or than gRPC can send.
 */
export function answerLimitsFor(
  budgets: Pick<
    Budgets,
    "builtAnswersTotalBytes" | "builtAnswersClientBytes" | "answersConnectionBytes"
  >,
): AnswerLimits {
  const { builtAnswersTotalBytes: totalBytes, builtAnswersClientBytes: clientBytes } = budgets;
  return {
    totalBytes,
    clientBytes,
    answerBytes: Math.min(clientBytes, budgets.answersConnectionBytes, MAX_MESSAGE_BYTES),
  };
}

/**
 * What gRPC can send at most: a message's length is kept in a signed number of 32 bits by most
 * clients.
 */
export const MAX_MESSAGE_BYTES = 2 ** 31 - 1;

/** Taken where no limits were computed for the machine. */
export const DEFAULT_ANSWER_LIMITS: AnswerLimits = {
  totalBytes: 256 << 20,
  clientBytes: 128 << 20,
  answerBytes: 128 << 20,
};

/** One answer that is being built. */
export interface AnswerHolder {
  readonly client: string;
  heldBytes: number;
  /** Ends it; what it holds is given back by `release`. */
  fail(error: Error): void;
}

export class AnswerMemory {
  readonly #limits: AnswerLimits;
  readonly #holders = new Map<string, Set<AnswerHolder>>();
  readonly #byClient = new Map<string, number>();
  #totalBytes = 0;
  /** Answers that were refused because of their size. */
  refused = 0;

  constructor(limits: AnswerLimits) {
    this.#limits = limits;
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  /**
   * Notes that an answer takes so many bytes more, or less. @throws StatusError RESOURCE_EXHAUSTED
   * where that is too much
   */
  charge(holder: AnswerHolder, bytes: number): void {
    this.#note(holder, bytes);
    if (bytes <= 0) return;
    const { answerBytes, clientBytes, totalBytes } = this.#limits;
    if (holder.heldBytes > answerBytes) throw this.#refuse("one answer", answerBytes);
    if ((this.#byClient.get(holder.client) ?? 0) > clientBytes)
      throw this.#refuse("the answers to one client", clientBytes);
    while (this.#totalBytes > totalBytes) {
      const largest = this.#largest();
      const error = this.#refuse("all answers", totalBytes);
      if (largest === holder) throw error;
      largest.fail(error);
      this.release(largest);
    }
  }

  /** Releases all that a response holds. */
  release(holder: AnswerHolder): void {
    this.#note(holder, -holder.heldBytes);
    const holders = this.#holders.get(holder.client);
    holders?.delete(holder);
    if (holders?.size !== 0) return;
    this.#holders.delete(holder.client);
    this.#byClient.delete(holder.client);
  }

  #note(holder: AnswerHolder, bytes: number): void {
    if (bytes === 0) return;
    holder.heldBytes += bytes;
    this.#totalBytes += bytes;
    this.#byClient.set(holder.client, (this.#byClient.get(holder.client) ?? 0) + bytes);
    const holders = this.#holders.get(holder.client);
    if (holders === undefined) this.#holders.set(holder.client, new Set([holder]));
    else holders.add(holder);
  }

  /** The largest answer of the client that holds most. */
  #largest(): AnswerHolder {
    let client = "";
    let most = -1;
    for (const [name, bytes] of this.#byClient) {
      if (bytes > most) [client, most] = [name, bytes];
    }
    return [...this.#holders.get(client)!].reduce((a, b) => (b.heldBytes > a.heldBytes ? b : a));
  }

  #refuse(what: string, limitBytes: number): StatusError {
    this.refused++;
    return new StatusError(
      GrpcCode.ResourceExhausted,
      `etcdserver: answer too large: ${what} may take ${limitBytes} bytes of this member's memory; ask for fewer keys at a time (limit)`,
    );
  }
}
