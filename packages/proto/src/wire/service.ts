/** What the generated table of services is written with. */
import type { MessageType, ServiceDescriptor } from "./message.ts";

/** A method without its service: how it streams, and its types. */
export interface Call<Q extends boolean, A extends boolean, Request, Response> {
  readonly requestStream: Q;
  readonly responseStream: A;
  readonly requestType: MessageType<Request>;
  readonly responseType: MessageType<Response>;
}

// biome-ignore lint/suspicious/noExplicitAny: a service has calls of all types
type Calls = { readonly [name: string]: Call<boolean, boolean, any, any> };
type Methods<C extends Calls> = {
  readonly [Name in keyof C]: C[Name] & { readonly path: string; readonly name: string };
};

/** One request, one response. */
export function unary<Q, A>(
  requestType: MessageType<Q>,
  responseType: MessageType<A>,
): Call<false, false, Q, A> {
  return { requestStream: false, responseStream: false, requestType, responseType };
}

/** One request, a stream of responses. */
export function serverStream<Q, A>(
  requestType: MessageType<Q>,
  responseType: MessageType<A>,
): Call<false, true, Q, A> {
  return { requestStream: false, responseStream: true, requestType, responseType };
}

/** A stream of requests, and a stream of responses. */
export function bothStream<Q, A>(
  requestType: MessageType<Q>,
  responseType: MessageType<A>,
): Call<true, true, Q, A> {
  return { requestStream: true, responseStream: true, requestType, responseType };
}

/**
 * A service with its methods by name.
 * @param typeName full protobuf name, such as "etcdserverpb.KV"
 */
export function service<C extends Calls>(
  typeName: string,
  calls: C,
): ServiceDescriptor & { readonly methods: Methods<C> } {
  const methods = Object.entries(calls).map(([name, call]) => [
    name,
    { path: `/${typeName}/${name}`, name, ...call },
  ]);
  return { typeName, methods: Object.fromEntries(methods) as Methods<C> };
}
