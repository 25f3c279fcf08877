/** What is below the Cachers: a storage of the tests, or EtcdStore over a cluster in memory. */
export type Below = "fake" | "etcd";
