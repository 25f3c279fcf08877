/** All methods of the proxy. */
import type { Logger } from "@quorate/host";
import {
  AuthService,
  ClusterService,
  fromUtf8,
  KVService,
  LeaseService,
  MaintenanceService,
  services,
  WatchService,
} from "@quorate/proto";
import {
  joinMessage,
  type ServiceTable,
  type StreamHandler,
  type UnaryHandler,
} from "@quorate/rpc";
import { clusterMethods } from "./cluster/cluster-service.ts";
import { encodeRecord, recordKey } from "./cluster/endpoint-records.ts";
import { ProxyList } from "./cluster/proxy-list.ts";
import { Registration } from "./cluster/registration.ts";
import { KvService } from "./kv/kv-service.ts";
import type { OrderedReads } from "./kv/ordering.ts";
import { LeaseProxy } from "./lease/lease-service.ts";
import { contestChanges } from "./namespace/contests.ts";
import { Namespace } from "./namespace/namespace.ts";
import { checked, inNamespace, rangeStream } from "./namespace/namespaced-kv.ts";
import type { ProxyMetrics } from "./upstream/metrics.ts";
import { passStream, passUnary } from "./upstream/pass-through.ts";
import type { Upstream } from "./upstream/upstream.ts";
import { WatchProxy } from "./watch/watch-service.ts";

export interface ProxyOptions {
  /** --namespace; empty for none. */
  readonly namespace: string;
  readonly advertised: string;
  readonly hostname: string;
  /** --resolver-prefix; empty: the proxy is not registered. */
  readonly resolverPrefix: string;
  readonly resolverTtlSeconds: number;
  readonly ordered: OrderedReads | undefined;
}

/** Those of these services have handlers of their own. */
const OWN = new Set<string>(
  [KVService, WatchService, LeaseService, ClusterService].map(({ typeName }) => typeName),
);
const { UserGet, UserList, RoleGet, RoleList, AuthStatus, Authenticate } = AuthService.methods;
/** Methods of Auth that change no permissions. */
const HARMLESS: ReadonlySet<string> = new Set(
  [UserGet, UserList, RoleGet, RoleList, AuthStatus, Authenticate].map(({ path }) => path),
);
const { Status, Hash, HashKV } = MaintenanceService.methods;
/** Methods that may be made twice without harm, besides those that their services know. */
const REPEATABLE: ReadonlySet<string> = new Set([
  ...HARMLESS,
  ...[Status, Hash, HashKV].map(({ path }) => path),
]);

/** A proxy without its sockets. */
export class GrpcProxy {
  readonly services: ServiceTable;
  readonly kv: KvService;
  readonly watches: WatchProxy;
  readonly #registration: Registration | undefined;
  readonly #list: ProxyList | undefined;

  constructor(upstream: Upstream, options: ProxyOptions, metrics: ProxyMetrics, logger: Logger) {
    const namespace = options.namespace === "" ? undefined : new Namespace(options.namespace);
    this.kv = new KvService(upstream, metrics, options.ordered);
    this.watches = new WatchProxy(upstream, metrics, namespace);
    const lease = new LeaseProxy(upstream, metrics, namespace);
    if (options.resolverPrefix !== "") {
      const { resolverPrefix: prefix, advertised, hostname } = options;
      const own = recordKey(prefix, advertised);
      this.#registration = new Registration(
        upstream,
        {
          key: namespace?.key(own) ?? own,
          value: encodeRecord({ address: advertised, name: hostname }),
          address: advertised,
          ttlSeconds: options.resolverTtlSeconds,
        },
        logger,
      );
      const range = { key: fromUtf8(`${prefix}/`), rangeEnd: fromUtf8(`${prefix}0`) };
      const whole = namespace?.range(range.key, range.rangeEnd) ?? range;
      this.#list = new ProxyList(upstream, whole, () => this.watches.anonymous(), logger);
    }
    const cluster = clusterMethods(upstream, {
      advertised: options.advertised,
      hostname: options.hostname,
      proxies: () => this.#list?.records ?? [],
    });
    const others = this.#passedThrough(upstream, namespace);
    const kv = this.kv.methods();
    this.services = {
      unary: new Map([
        ...(namespace === undefined ? kv : inNamespace(kv, namespace)),
        ...lease.unary(),
        ...cluster,
        ...others.unary,
      ]),
      stream: new Map([
        ...rangeStream(upstream, namespace),
        ...this.watches.methods(),
        ...lease.stream(),
        ...others.stream,
      ]),
    };
  }

  /** Registers the proxy, if it is to be. Returns at once. */
  start(): void {
    this.#registration?.start();
    this.#list?.start();
  }

  /** Removes the registration. */
  async close(): Promise<void> {
    this.#list?.close();
    await this.#registration?.close();
  }

  #passedThrough(upstream: Upstream, namespace: Namespace | undefined) {
    const unary = new Map<string, UnaryHandler>();
    const stream = new Map<string, StreamHandler>();
    const changes = namespace === undefined ? undefined : contestChanges(namespace);
    for (const service of services.filter(({ typeName }) => !OWN.has(typeName))) {
      for (const { path, requestStream, responseStream } of Object.values(service.methods)) {
        const change = changes?.get(path);
        if (requestStream || responseStream) {
          stream.set(path, passStream(upstream, path, change?.request, change?.response));
          continue;
        }
        const pass = passUnary(upstream, path, REPEATABLE.has(path));
        const isAuth = service.typeName === AuthService.typeName && !HARMLESS.has(path);
        unary.set(
          path,
          change !== undefined
            ? async (request, context) =>
                change.response(joinMessage(await pass(checked(change.request, request), context)))
            : isAuth
              ? this.#clearing(pass)
              : pass,
        );
      }
    }
    return { unary, stream };
  }

  /** What changes users or roles may change who reads what is cached. */
  #clearing(handler: UnaryHandler): UnaryHandler {
    return async (request, context) => {
      try {
        return await handler(request, context);
      } finally {
        this.kv.cache.clear();
      }
    };
  }
}
