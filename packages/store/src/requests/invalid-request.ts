/** A request that no state makes valid, and that etcd's API has no error of its own for. */
export class InvalidRequestError extends Error {
  readonly code = "INVALID_REQUEST";
  constructor(problem: string) {
    super(`etcdserver: ${problem}`);
    this.name = "InvalidRequestError";
  }
}
