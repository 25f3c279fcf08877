/** An acceptor that records its calls, and never responds by itself. */
import { toLatin1 } from "@quorate/proto";
import type { Http2Connection, RequestAcceptor } from "../../src/http2/connection.ts";
import type { Http2Stream } from "../../src/http2/stream.ts";

export class Recorder implements RequestAcceptor {
  readonly events: string[] = [];
  readonly streams = new Map<number, Http2Stream>();
  /** Credits body bytes to the client's window as they arrive. */
  credits = true;

  accept(connection: Http2Connection, stream: Http2Stream, ended: boolean): void {
    const { id, head } = stream;
    this.streams.set(id, stream);
    this.events.push(`request ${id} ${head.method} ${head.path.value}${ended ? " end" : ""}`);
    stream.consumer = {
      data: (bytes, start, end) => {
        this.events.push(
          `data ${id} ${end - start > 40 ? `${end - start} bytes` : toLatin1(bytes, start, end)}`,
        );
        if (this.credits) connection.credit(stream, end - start);
      },
      ended: () => this.events.push(`ended ${id}`),
      aborted: () => this.events.push(`aborted ${id}`),
      drained: () => this.events.push(`drained ${id}`),
    };
  }

  refuseTooLarge(connection: Http2Connection, stream: Http2Stream): void {
    this.streams.set(stream.id, stream);
    this.events.push(`too large ${stream.id}`);
    connection.sender.headers(
      stream,
      { fields: [{ name: ":status", value: "431" }], constant: false },
      true,
    );
  }

  /** The events since the last time. */
  take(): string[] {
    return this.events.splice(0);
  }
}
