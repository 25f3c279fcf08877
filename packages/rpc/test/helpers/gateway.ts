/** A gateway over handlers of a test, and exchanges with it. */
import { ManualClock, MemoryExchange } from "@quorate/host/testing";
import { httpRoutes, KeyValue } from "@quorate/proto";
import { Gateway } from "../../src/gateway/gateway.ts";
import type { GatewayLimits } from "../../src/gateway/settings.ts";
import type { ServiceTable } from "../../src/service.ts";

const LIMITS: GatewayLimits = {
  maxRequestBytes: 4096,
  maxBodyBytes: 8192,
  maxResponseBytes: 1 << 24,
  sendBudgetBytes: 1000,
  maxLingeringBytes: 5000,
  maxCalls: 3,
};

/** The gateway, its clock, and what ended: "Range 0" for each call. */
export function gatewayOf(
  table: Partial<ServiceTable>,
  limits: Partial<GatewayLimits> = {},
): { gateway: Gateway; clock: ManualClock; codes: string[] } {
  const clock = new ManualClock();
  const codes: string[] = [];
  const gateway = new Gateway({
    services: { unary: new Map(), stream: new Map(), ...table },
    routes: httpRoutes(),
    clock,
    observer: {
      started: () => {},
      handled: (path, code) => void codes.push(`${path.replace(/.*\./, "")} ${code}`),
      messageReceived: () => {},
      messageSent: () => {},
    },
    limits: { ...LIMITS, ...limits },
  });
  return { gateway, clock, codes };
}

/** UTF-8. */
export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** An exchange that has not begun. */
export function exchangeOf(
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = "POST",
): MemoryExchange {
  return new MemoryExchange({ path, method, headers: new Map(Object.entries(headers)) });
}

/** A finished exchange of a unary call. */
export async function call(
  gateway: Gateway,
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
  method = "POST",
): Promise<MemoryExchange> {
  const exchange = exchangeOf(path, headers, method).serve(gateway.handler, [bytes(body)]);
  await exchange.done;
  return exchange;
}

/** An encoded key with its value. */
export function keyValue(key: Uint8Array, value: string): Uint8Array {
  return KeyValue.encode({ key, value: bytes(value) }).slice();
}
