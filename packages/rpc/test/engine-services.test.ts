/** The services that an engine can answer by itself: health and reflection. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { concat, fromHex, fromLatin1, toHex, toLatin1 } from "@quorate/proto";
import { HealthService } from "../src/grpc/health.ts";
import { ReflectionService } from "../src/grpc/reflection.ts";
import { readFields, writeFields } from "../src/grpc/wire.ts";
import { FrameType } from "../src/http2/constants.ts";
import { data, rstStream } from "./engine/core.ts";
import { CALL, GrpcClient, message } from "./engine/grpc.ts";

/** The messages that came on a stream since the last time, and its status if it has ended. */
function received(
  client: GrpcClient,
  streamId: number,
): { messages: Uint8Array[]; status: string | undefined } {
  const frames = client.takeFrames().filter((one) => one.streamId === streamId);
  const status = frames
    .map((one) => /grpc-status=\d+( grpc-message=[^=]*)?(?= end$)/.exec(one.line)?.[0])
    .find((one) => one !== undefined);
  return {
    messages: frames
      .filter((one) => one.type === FrameType.Data)
      .map((one) => one.payload.subarray(5)),
    status,
  };
}

function ask(
  client: GrpcClient,
  streamId: number,
  path: string,
  request: Uint8Array,
): ReturnType<typeof received> {
  client.send(
    client.headers(streamId, { ...CALL, ":path": path }),
    data(streamId, message(request), true),
  );
  return received(client, streamId);
}

describe("health", () => {
  const CHECK = "/grpc.health.v1.Health/Check";

  function start(): { health: HealthService; client: GrpcClient } {
    const health = new HealthService();
    health.set("", true);
    const client = new GrpcClient({
      unary: Object.fromEntries(health.methods.unary),
      stream: Object.fromEntries(health.methods.stream),
    });
    return { health, client };
  }

  test("returns the state that was set", () => {
    const { health, client } = start();
    health.set("kv", false);
    assert.equal(toHex(ask(client, 1, CHECK, fromHex("")).messages[0]), "0801");
    assert.equal(toHex(ask(client, 3, CHECK, fromHex("0a026b76")).messages[0]), "0802");
    assert.equal(
      ask(client, 5, CHECK, fromHex("0a0178")).status,
      "grpc-status=5 grpc-message=unknown service",
    );
    assert.match(ask(client, 7, CHECK, fromHex("0a05")).status!, /^grpc-status=13 /);
  });

  test("notifies watchers of each change, until they leave", () => {
    const { health, client } = start();
    const path = "/grpc.health.v1.Health/Watch";
    const watch = (id: number, request: string) =>
      client.send(
        client.headers(id, { ...CALL, ":path": path }),
        data(id, message(fromHex(request)), true),
      );
    watch(1, "");
    watch(3, "0a026b76");
    assert.equal(toHex(concat(received(client, 1).messages)), "0801");
    health.set("kv", true);
    assert.equal(toHex(concat(received(client, 3).messages)), "0801");
    health.set("", false);
    health.set("", false);
    assert.equal(toHex(concat(received(client, 1).messages)), "0802");
    client.send(rstStream(1));
    health.set("", true);
    assert.deepEqual(client.take(), []);
    // Of a service that is not known yet, that is said, and the change when it comes.
    watch(5, "0a0179");
    assert.equal(toHex(concat(received(client, 5).messages)), "0803");
    health.set("y", true);
    assert.equal(toHex(concat(received(client, 5).messages)), "0801");
  });
});

describe("reflection", () => {
  const text = fromLatin1;
  /**
   * message Inner { enum Kind; int32 field; } within Outer; service Echo { rpc Say }; in package
   * a.b, with an import.
   */
  const BASE = writeFields([
    [1, text("base.proto")],
    [2, text("base")],
    [4, writeFields([[1, text("Empty")]])],
  ]);
  const FILE = writeFields([
    [1, text("dir/echo.proto")],
    [2, text("a.b")],
    [3, text("base.proto")],
    [3, text("missing.proto")],
    [
      4,
      writeFields([
        [1, text("Outer")],
        [
          3,
          writeFields([
            [1, text("Inner")],
            [2, writeFields([[1, text("field")]])],
            [4, writeFields([[1, text("Kind")]])],
          ]),
        ],
      ]),
    ],
    [5, writeFields([[1, text("Color")]])],
    [
      6,
      writeFields([
        [1, text("Echo")],
        [2, writeFields([[1, text("Say")]])],
      ]),
    ],
  ]);

  /** The answer to one request: the number of its field, and what is in it. */
  function start(version = "v1"): (request: Uint8Array) => {
    field: number;
    bytes: Uint8Array;
    host: string;
    request: Uint8Array;
  } {
    const reflection = new ReflectionService([FILE, BASE], ["a.b.Echo", "a.a.First"]);
    const client = new GrpcClient({ stream: Object.fromEntries(reflection.methods.stream) });
    client.send(
      client.headers(1, {
        ...CALL,
        ":path": `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
      }),
    );
    return (request) => {
      client.send(data(1, message(request)));
      const [host, original, answer] = readFields(received(client, 1).messages[0])!;
      return {
        field: answer.field,
        bytes: answer.bytes!,
        host: toLatin1(host.bytes!),
        request: original.bytes!,
      };
    };
  }

  const files = (bytes: Uint8Array): Uint8Array[] => readFields(bytes)!.map((one) => one.bytes!);

  test("lists services, in both versions", () => {
    for (const version of ["v1", "v1alpha"]) {
      const request = writeFields([
        [1, text("host")],
        [7, text("*")],
      ]);
      const answer = start(version)(request);
      assert.equal(answer.field, 6);
      assert.equal(answer.host, "host");
      assert.deepEqual(answer.request, request);
      assert.deepEqual(
        files(answer.bytes).map((one) => toLatin1(readFields(one)![0].bytes!)),
        ["a.a.First", "a.b.Echo"],
      );
    }
  });

  test("finds files by name and by what they define, with their imports", () => {
    const asked = start();
    for (const symbol of [
      "a.b.Outer",
      "a.b.Outer.Inner",
      "a.b.Outer.Inner.field",
      "a.b.Outer.Inner.Kind",
      "a.b.Color",
      "a.b.Echo",
      "a.b.Echo.Say",
    ]) {
      const { field, bytes } = asked(writeFields([[4, text(symbol)]]));
      assert.equal(field, 4, symbol);
      assert.deepEqual(files(bytes), [FILE, BASE]);
    }
    assert.deepEqual(files(asked(writeFields([[3, text("base.proto")]])).bytes), [BASE]);
    assert.deepEqual(files(asked(writeFields([[4, text("base.Empty")]])).bytes), [BASE]);
  });

  test("says what it does not have", () => {
    const asked = start();
    const error = (request: Uint8Array): string => {
      const { field, bytes } = asked(request);
      assert.equal(field, 7);
      const [code, reason] = readFields(bytes)!;
      return `${code.number} ${toLatin1(reason.bytes!)}`;
    };
    assert.equal(error(writeFields([[3, text("x.proto")]])), '5 file "x.proto" not found');
    assert.equal(error(writeFields([[4, text("a.b.No")]])), '5 symbol "a.b.No" not found');
    assert.equal(error(writeFields([[5, new Uint8Array(0)]])), "5 extension not found");
    assert.equal(error(writeFields([[6, text("a.No")]])), '5 type "a.No" not found');
    assert.equal(asked(writeFields([[6, text("a.b.Outer")]])).field, 5);
  });

  test("refuses what is no request or no descriptor", () => {
    const reflection = new ReflectionService([], []);
    for (const [request, status] of [
      [fromHex("0a05"), 13],
      [fromHex(""), 3],
    ] as const) {
      const client = new GrpcClient({ stream: Object.fromEntries(reflection.methods.stream) });
      const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
      assert.match(ask(client, 1, path, request).status!, new RegExp(`^grpc-status=${status} `));
    }
    assert.throws(() => new ReflectionService([fromHex("0aff")], []), RangeError);
  });
});

test("messages of the wire format", () => {
  assert.equal(toHex(writeFields([[1, 300]])), "08ac02");
  assert.deepEqual(readFields(fromHex("08ac02")), [{ field: 1, number: 300, bytes: undefined }]);
  // Fixed-width fields are passed over.
  assert.deepEqual(readFields(fromHex("0900112233445566770d001122330801")), [
    { field: 1, number: 1, bytes: undefined },
  ]);
  for (const bad of ["08", "0a", "0a02ff", "00", "0b", "0d0011", `08${"ff".repeat(11)}`])
    assert.equal(readFields(fromHex(bad)), undefined, bad);
});
