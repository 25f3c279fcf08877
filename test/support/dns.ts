/**
 * A name server on this machine that answers questions for SRV records, and processes that ask it
 * in place of the system's.
 */
import { createSocket } from "node:dgram";
import type { AddressInfo } from "node:net";

/** Of _service._tcp.domain to "host:port". */
export type SrvZone = Readonly<Record<string, readonly string[]>>;

export interface DnsServer {
  /** For a Node process that is to ask it: its variables. */
  readonly env: Readonly<Record<string, string>>;
  close(): void;
}

const TYPE_SRV = 33;
const NO_SUCH_NAME = 3;
const HEAD_BYTES = 12;

function labels(name: string): Buffer {
  return Buffer.concat([
    ...name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0]),
  ]);
}

/** The answer to a question (RFC 1035, section 4; RFC 2782). */
function answer(question: Buffer, zone: SrvZone): Buffer {
  let at = HEAD_BYTES;
  const name: string[] = [];
  for (let length = question[at]; length > 0; length = question[at]) {
    name.push(question.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = question.readUInt16BE(at + 1);
  const targets = type === TYPE_SRV ? (zone[name.join(".")] ?? []) : [];
  const head = Buffer.from(question.subarray(0, HEAD_BYTES));
  head.writeUInt16BE(0x8580 | (targets.length === 0 ? NO_SUCH_NAME : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(targets.length, 6);
  head.writeUInt32BE(0, 8);
  const records = targets.map((target, i) => {
    const [host, port] = target.split(":") as [string, string];
    const data = Buffer.concat([
      Buffer.from([0, i, 0, 0, Number(port) >> 8, Number(port) & 0xff]),
      labels(host),
    ]);
    // The name of the question, SRV, IN, 60 seconds.
    return Buffer.concat([
      Buffer.from([0xc0, HEAD_BYTES, 0, TYPE_SRV, 0, 1, 0, 0, 0, 60, 0, data.length]),
      data,
    ]);
  });
  return Buffer.concat([head, question.subarray(HEAD_BYTES, at + 5), ...records]);
}

/** Starts one; `close` ends it. */
export async function startDns(zone: SrvZone): Promise<DnsServer> {
  const socket = createSocket("udp4");
  socket.on("message", (question, { port, address }) =>
    socket.send(answer(question, zone), port, address),
  );
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address() as AddressInfo;
  const setServers = `import { setServers } from "node:dns"; setServers(["127.0.0.1:${port}"]);`;
  return {
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(setServers)}` },
    close: () => socket.close(),
  };
}
