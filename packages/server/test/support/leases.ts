/** Leases, locks and elections as a client of a member in memory asks for them. */

import type { Member } from "@quorate/member";
import {
  fromUtf8,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseLeasesRequest,
  LeaseLeasesResponse,
  LeaseRevokeRequest,
  LeaseService,
  LeaseTimeToLiveRequest,
  LeaseTimeToLiveResponse,
  PutRequest,
} from "@quorate/proto";
import type { MessageBytes, Status, StreamCall, StreamListener } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
import { call } from "./world.ts";

const { LeaseGrant, LeaseRevoke, LeaseTimeToLive, LeaseLeases, LeaseKeepAlive } =
  LeaseService.methods;

export async function grant(member: Member, ID: bigint, TTL: number): Promise<LeaseGrantResponse> {
  return LeaseGrantResponse.decode(
    await call(member, LeaseGrant.path, LeaseGrantRequest.encode({ ID, TTL })),
  );
}

export function revoke(member: Member, ID: bigint): Promise<Uint8Array> {
  return call(member, LeaseRevoke.path, LeaseRevokeRequest.encode({ ID }));
}

export async function timeToLive(
  member: Member,
  ID: bigint,
  keys = false,
): Promise<LeaseTimeToLiveResponse> {
  return LeaseTimeToLiveResponse.decode(
    await call(member, LeaseTimeToLive.path, LeaseTimeToLiveRequest.encode({ ID, keys })),
  );
}

export async function list(member: Member): Promise<bigint[]> {
  const bytes = await call(member, LeaseLeases.path, LeaseLeasesRequest.encode({}));
  return LeaseLeasesResponse.decode(bytes).leases.map(({ ID }) => ID);
}

export function putLeased(member: Member, key: string, lease: bigint): Promise<Uint8Array> {
  return call(
    member,
    "/etcdserverpb.KV/Put",
    PutRequest.encode({ key: fromUtf8(key), value: fromUtf8("v"), lease }),
  );
}

/** A streaming call from the client's side. */
export interface ClientStream {
  readonly listener: StreamListener;
  readonly messages: Uint8Array[];
  /** The same as they were sent, in one piece or several. */
  readonly sent: MessageBytes[];
  /** How often the call was paused or resumed. */
  turns: number;
  status: Status | undefined;
  /** What `send` returns. */
  canSend: boolean;
  isPaused: boolean;
}

/** Opens a streaming call. */
export function openStream(
  member: Member,
  path: string,
  metadata: Record<string, string> = {},
): ClientStream {
  const call: StreamCall = {
    context: {
      path,
      metadata: (key) => metadata[key],
      deadlineMs: undefined,
      peerAddress: "127.0.0.1:1",
      peerCommonName: undefined,
      trace: undefined,
      cancelled: false,
      onCancel() {},
    },
    send: (message: MessageBytes) => {
      stream.sent.push(message);
      stream.messages.push(message instanceof Uint8Array ? message : Buffer.concat(message));
      return stream.canSend;
    },
    bufferedBytes: 0,
    end: (status) => {
      stream.status = status ?? { code: 0, message: "" };
    },
    pause: () => {
      stream.turns++;
      stream.isPaused = true;
    },
    resume: () => {
      stream.turns++;
      stream.isPaused = false;
    },
  };
  const stream: { -readonly [K in keyof ClientStream]: ClientStream[K] } = {
    listener: {},
    messages: [],
    sent: [],
    turns: 0,
    status: undefined,
    canSend: true,
    isPaused: false,
  };
  stream.listener = serviceTable(member).stream.get(path)!(call);
  return stream;
}

export function openKeepAlive(member: Member, metadata: Record<string, string> = {}): ClientStream {
  return openStream(member, LeaseKeepAlive.path, metadata);
}

export function sendKeepAlive(stream: ClientStream, ID: bigint): void {
  stream.listener.message!(LeaseKeepAliveRequest.encode({ ID }));
}

/** The answers so far, as [id, seconds]. */
export function answers(stream: ClientStream): [id: bigint, seconds: number][] {
  return stream.messages.map((bytes) => {
    const { ID, TTL } = LeaseKeepAliveResponse.decode(bytes);
    return [ID, TTL];
  });
}

/** One keep-alive on a stream of its own: the seconds; rejects with the stream's status text. */
export async function keepAlive(
  member: Member,
  id: bigint,
  settled: (done: () => boolean) => Promise<void>,
): Promise<number> {
  const stream = openKeepAlive(member);
  sendKeepAlive(stream, id);
  await settled(() => stream.messages.length > 0 || stream.status !== undefined);
  stream.listener.cancelled?.();
  if (stream.messages.length === 0) throw new Error(stream.status!.message);
  return answers(stream)[0][1];
}
