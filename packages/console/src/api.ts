/**
 * The calls of the page that no other API of a member answers: POST /console/api/NAME, with JSON in
 * both directions. Each begins with a call of etcd's services by the same caller, so that identity,
 * permission, limits, metrics and the audit log are those of the JSON gateway:
 *
 *     overview, rates, decode   Status: any user
 *     children, top, changes    Status, and Range over the keys: who may read them
 *     log                       UserList: the role root
 */
import {
  HeldBody,
  type HttpExchange,
  type HttpExchangeListener,
  type HttpHead,
} from "@quorate/host";
import { callerOf, type Member, pinned, type SliceTask } from "@quorate/member";
import {
  AuthService,
  fromBase64,
  fromLatin1,
  GrpcCode,
  KVService,
  MaintenanceService,
  RangeRequest,
  toLatin1,
  toUtf8,
} from "@quorate/proto";
import { errorResponse, type RpcObserver, type ServiceTable, StatusError } from "@quorate/rpc";
import { contextOf, ExchangeCaller, ServiceCalls, toStatusError } from "@quorate/services";
import { type KeyRange, keyRange, type PinnedView, type Steps } from "@quorate/store";
import { changesSteps } from "./changes.ts";
import { childrenOf } from "./children.ts";
import type { LogRing } from "./log-ring.ts";
import { endOfPrefix } from "./names.ts";
import type { overview } from "./overview.ts";
import { COLUMNS, MAX_SAMPLES, type Rates, SAMPLE_MS } from "./rates.ts";
import { topSteps } from "./top.ts";

/** Longest body: a value to decode, in base64. */
export const MAX_BODY_BYTES: number = 32 * 1024;
/** Calls that run at a time; more are refused. */
export const MAX_RUNNING_CALLS = 32;
const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

export interface ApiParts {
  readonly services: ServiceTable;
  /** As pageTable(). */
  readonly pages: ServiceTable;
  readonly observer: RpcObserver | undefined;
  readonly log: LogRing;
  readonly rates: Rates;
  readonly overview: ReturnType<typeof overview>;
}

/** A request's body: an object, of which each call takes the fields that it knows. */
type Body = Readonly<Record<string, unknown>>;

/**
 * The caller of a request. As for the gateway, a certificate of its connection is no identity: a
 * browser shows it for any page.
 */
class PageCaller extends ExchangeCaller {
  override metadata(key: string): string | undefined {
    return key === "grpcgateway-accept" ? "*/*" : super.metadata(key);
  }
}

export class ConsoleApi {
  readonly #member: Member;
  readonly #parts: ApiParts;
  readonly #calls: ServiceCalls;
  readonly #pages: ServiceCalls;
  #running = 0;

  constructor(member: Member, parts: ApiParts) {
    this.#member = member;
    this.#parts = parts;
    const { clock } = member;
    const { services, pages, observer } = parts;
    this.#calls = new ServiceCalls(services, { clock, observer });
    this.#pages = new ServiceCalls(pages, { clock, observer });
  }

  /** Serves one request. @param name of the call */
  serve(exchange: HttpExchange, name: string): HttpExchangeListener {
    const body = new HeldBody(exchange, MAX_BODY_BYTES);
    const caller = new PageCaller(exchange.head);
    const refuse = (code: number, text: string): void =>
      exchange.respond(errorResponse({ code, message: text }));
    return {
      data: (bytes) => {
        const why = body.push(bytes);
        if (why !== undefined) refuse(GrpcCode.ResourceExhausted, `the body of a call: ${why}`);
      },
      ended: () => {
        if (body.isRefused) return;
        if (this.#running >= MAX_RUNNING_CALLS) {
          refuse(GrpcCode.ResourceExhausted, "too many calls of the console at a time");
          return;
        }
        this.#running++;
        this.#answer(name, body.take(), caller, exchange.head)
          .then(
            (result) => exchange.respond({ status: 200, headers: JSON_HEADERS, body: result }),
            (error: unknown) => exchange.respond(errorResponse(toStatusError(error))),
          )
          .finally(() => this.#running--);
      },
      aborted: () => caller.cancel(),
    };
  }

  /** Who it is first, then what is wanted. */
  async #answer(
    name: string,
    bytes: Uint8Array,
    caller: ExchangeCaller,
    { headers }: HttpHead,
  ): Promise<string> {
    // What a form of another site can send is none of these.
    if (headers.get("content-type") !== "application/json")
      throw new StatusError(GrpcCode.InvalidArgument, "the body must be application/json");
    if (name === "log") await this.#calls.unary(AuthService.methods.UserList, {}, caller);
    else await this.#calls.unary(MaintenanceService.methods.Status, {}, caller);
    const result = await this.#result(name, bodyOf(bytes), caller);
    return JSON.stringify(result);
  }

  async #result(name: string, body: Body, caller: ExchangeCaller): Promise<unknown> {
    const { rates, log } = this.#parts;
    switch (name) {
      case "overview":
        return this.#parts.overview.ask();
      case "rates":
        return {
          sampleMs: SAMPLE_MS,
          maxSamples: MAX_SAMPLES,
          columns: COLUMNS,
          samples: rates.samples(),
        };
      case "children": {
        const prefix = keyOf(body, "prefix");
        const from = body["from"] === undefined ? prefix : keyOf(body, "from");
        const request = { prefix, from, revision: numberOf(body, "revision") };
        return childrenOf(this.#pages, caller, request);
      }
      case "top": {
        const prefix = keyOf(body, "prefix");
        const since = rates.revisionBefore(numberOf(body, "minutes") * 60_000);
        return this.#walk(prefix, caller, (view, task, range) =>
          topSteps(view, task, { prefix, range, since }),
        );
      }
      case "changes": {
        const [from, to] = [numberOf(body, "from"), numberOf(body, "to")];
        return this.#walk(keyOf(body, "prefix"), caller, (view, task, range) =>
          changesSteps(view, task, { range, from, to }),
        );
      }
      case "log":
        return { lines: log.after(numberOf(body, "after")) };
      case "decode": {
        const { decodedYaml } = await import("./decode.ts");
        return { yaml: (await decodedYaml(fromLatin1(keyOf(body, "value")))) ?? null };
      }
      default:
        throw new StatusError(GrpcCode.NotFound, `the console has no call ${name.slice(0, 50)}`);
    }
  }

  /** Walks through the index of the keys with a prefix, in slices. */
  async #walk<T>(
    prefix: string,
    caller: ExchangeCaller,
    steps: (view: PinnedView, task: SliceTask, range: KeyRange) => Steps<T>,
  ): Promise<T> {
    const member = this.#member;
    const { path } = KVService.methods.Range;
    const key = fromLatin1(prefix === "" ? "\0" : prefix);
    const rangeEnd = fromLatin1(prefix === "" ? "\0" : endOfPrefix(prefix));
    const request = RangeRequest.create({ key, rangeEnd, serializable: true, limit: 1 });
    // For the audit log; the walk below is permitted by itself.
    await this.#pages.unary(KVService.methods.Range, request, caller);
    const reader = callerOf(contextOf(path, caller));
    const range = keyRange(key, rangeEnd);
    return member.read(reader, {
      access: { kind: "range", request },
      linearizable: false,
      run: () =>
        member.slices.run(reader, (task) =>
          pinned(member, task, (view) => steps(view, task, range)),
        ),
    });
  }
}

function bodyOf(bytes: Uint8Array): Body {
  let value: unknown;
  try {
    value = JSON.parse(toUtf8(bytes));
  } catch {
    throw new StatusError(GrpcCode.InvalidArgument, "the body is no JSON");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Body;
  throw new StatusError(GrpcCode.InvalidArgument, "the body is no JSON object");
}

/** A field in base64, as latin1; "" where it is not there. */
function keyOf(body: Body, name: string): string {
  const text = body[name] ?? "";
  const bytes = typeof text === "string" ? fromBase64(text) : undefined;
  if (bytes !== undefined) return toLatin1(bytes);
  throw new StatusError(GrpcCode.InvalidArgument, `${name} is no base64`);
}

/** A whole number that is not negative; 0 where it is not there. */
function numberOf(body: Body, name: string): number {
  const value = body[name] ?? 0;
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new StatusError(GrpcCode.InvalidArgument, `${name} is no whole number`);
}
