/** The client of npm's etcd3. */
import { Buffer } from "node:buffer";
import { Role, User } from "./auth.ts";
import { Namespace } from "./namespace.ts";
import type { IOptions } from "./options.ts";
import { ConnectionPool, type ICallable } from "./pool.ts";
import { AuthClient, ClusterClient, MaintenanceClient } from "./services.ts";

/**
 * A client of the whole store, in the shape of npm's etcd3:
 *
 *   const client = new Etcd3({ hosts: "http://127.0.0.1:2379" });
 *   await client.put("color").value("red");
 *   console.log(await client.get("color").string());
 */
export class Etcd3 extends Namespace implements Disposable {
  readonly auth: AuthClient;
  readonly maintenance: MaintenanceClient;
  readonly cluster: ClusterClient;

  /** Throws for wrong options. Connections open with the first call that needs them. */
  constructor(options: IOptions = {}) {
    super(Buffer.alloc(0), new ConnectionPool(options));
    this.auth = new AuthClient(this.pool);
    this.maintenance = new MaintenanceClient(this.pool);
    this.cluster = new ClusterClient(this.pool);
  }

  async getRoles(): Promise<Role[]> {
    const { roles } = await this.auth.roleList();
    return roles.map((name) => new Role(this.auth, name));
  }

  role(name: string): Role {
    return new Role(this.auth, name);
  }

  async getUsers(): Promise<User[]> {
    const { users } = await this.auth.userList();
    return users.map((name) => new User(this.auth, name));
  }

  user(name: string): User {
    return new User(this.auth, name);
  }

  /** Puts something in place of the cluster, for a test; returns it. */
  mock<T extends Partial<ICallable>>(callable: T): T {
    this.pool.mock(callable);
    return callable;
  }

  unmock(): void {
    this.pool.unmock();
  }

  /** Closes all connections; watches and renewals of leases end. */
  close(): void {
    this.pool.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
