/** How much a store does at a time; docs/reference/limits.md lists it. */
export interface StoreBounds {
  /** Maximum records that one step reads from the backend: some 0.5 ms. */
  readonly stepRecords: number;
  /** Maximum records that one step takes from memory: some 0.2 ms. */
  readonly stepMemoryRecords: number;
  /** A step ends after this many bytes of records, whatever their number. */
  readonly stepBytes: number;
  /** Maximum bytes of records that are read together; one record may exceed it. */
  readonly batchBytes: number;
  /** Up to so many records are read at once on the loop: a trip to another thread takes longer. */
  readonly syncRecords: number;
  /** Records that are fetched together: taking them over from the other thread takes some 0.5 ms. */
  readonly fetchedRecords: number;
  /** Bytes of history that one turn reads, for watchers and hashes: some 2 ms of small records. */
  readonly sliceBytes: number;
  /** Changes after which a slice of history may end within a revision. */
  readonly openChanges: number;
  /** Users whose roles one step looks at. */
  readonly stepUsers: number;
  /**
   * A batch of the backend is written after this many bytes at the latest: large values reach it
   * before the count of changes.
   */
  readonly pendingBytes: number;
}

export const STORE_BOUNDS: StoreBounds = {
  stepRecords: 32,
  stepMemoryRecords: 256,
  stepBytes: 256 << 10,
  batchBytes: 1 << 20,
  syncRecords: 8,
  fetchedRecords: 256,
  sliceBytes: 64 << 10,
  openChanges: 4096,
  stepUsers: 128,
  pendingBytes: 64 << 20,
};
