/** A World with access control, admission and controllers. */

import { ManualClock } from "@quorate/host/testing";
import { policyResources } from "../../src/admission/policy-kinds.ts";
import {
  type WebhookCall,
  WebhookCallError,
  type WebhookCaller,
  type WebhookResponse,
} from "../../src/admission/webhook-caller.ts";
import { webhookResources } from "../../src/admission/webhook-kinds.ts";
import type { Access } from "../../src/authz/access.ts";
import { CONTROLLERS } from "../../src/controllers/controllers.ts";
import { PolicyRuntime, type PolicyRuntimeOptions } from "../../src/controllers/runtime.ts";
import { RequestExpressions } from "../../src/crd/cel/request-expressions.ts";
import { plainResource, source, World } from "./world.ts";
import { accessOf } from "./world-access.ts";

/** Those of whose resources the world has all. */
const NOT_SERVED: ReadonlySet<string> = new Set([
  "resourcequota-controller",
  "service-cidr-controller",
]);
const SERVED = new Set(CONTROLLERS.filter((name) => !NOT_SERVED.has(name)));

/** Webhooks by URL, in memory. */
export class FakeWebhooks implements WebhookCaller {
  readonly calls: WebhookCall[] = [];
  readonly answers = new Map<string, (call: WebhookCall) => Promise<WebhookResponse>>();

  call(call: WebhookCall): Promise<WebhookResponse> {
    this.calls.push(call);
    const { url = "" } = call.config;
    const handler = this.answers.get(url);
    if (handler !== undefined) return handler(call);
    const text = `Post "${url}?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused`;
    return Promise.reject(new WebhookCallError("Unreachable", text));
  }
}

export interface TestServer {
  readonly world: World;
  readonly clock: ManualClock;
  readonly access: Access;
  readonly runtime: PolicyRuntime;
  readonly webhooks: FakeWebhooks;
  stop(): Promise<void>;
}

export async function startServer(
  options: Partial<Pick<PolicyRuntimeOptions, "plugins" | "controllers">> = {},
) {
  const clock = new ManualClock();
  const world = new World(clock);
  const access = accessOf(world);
  const lease = { group: "coordination.k8s.io", version: "v1", kind: "Lease" };
  world.add(plainResource(lease, "leases", true));
  for (const spec of access.resources(source)) world.add(spec);
  const expressions = new RequestExpressions();
  await expressions.load();
  for (const spec of webhookResources(source, expressions)) world.add(spec);
  const policyNamed = async () => undefined;
  const { authorizer } = access;
  for (const spec of policyResources(source, {
    expressions,
    authorizer,
    served: world,
    policyNamed,
  }))
    world.add(spec);
  world.serve(...access.endpoints(source));
  const webhooks = new FakeWebhooks();
  const runtime = new PolicyRuntime(
    {
      plugins: options.plugins ?? new Set(["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"]),
      controllers: options.controllers ?? SERVED,
      rootCaPem: "-----BEGIN CERTIFICATE-----",
      identity: "server-1",
      createsDefaultRoles: true,
    },
    {
      clock,
      random: world.random,
      logger: world.logger,
      served: world,
      authorizer: access.authorizer,
      webhooks,
      expressions,
    },
  );
  await driven(clock, access.start(world));
  await driven(clock, runtime.start());
  world.plugins.push({
    mutate: (attributes) => runtime.admission.mutate(attributes),
    validate: (attributes) => runtime.admission.validate(attributes),
  });
  const stop = async (): Promise<void> => {
    await driven(clock, runtime.stop());
    access.stop();
  };
  return { world, clock, access, runtime, webhooks, stop } satisfies TestServer;
}

/** Advances the clock in small steps until the work is done. */
export async function driven<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  const ended = work.finally(() => {
    isDone = true;
  });
  ended.catch(() => {});
  for (let step = 0; step < 20_000 && !isDone; step++) await clock.advanceAsync(5);
  return ended;
}

/** Advances the clock until a condition holds; fails when it does not within a minute. */
export async function until(
  clock: ManualClock,
  what: string,
  isTrue: () => Promise<boolean> | boolean,
): Promise<void> {
  for (let step = 0; step < 600; step++) {
    if (await driven(clock, Promise.resolve(isTrue()))) return;
    await clock.advanceAsync(100);
  }
  throw new Error(`not reached: ${what}`);
}
