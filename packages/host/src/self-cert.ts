/**
 * A certificate that signs itself. A client that connects accepts any, since no authority vouches
 * for one.
 */
export interface SelfCertConfig {
  /** Where the files are, in the data directory. */
  readonly dir: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** Names and addresses that it is valid for. */
  readonly hosts: readonly string[];
  readonly validityYears: number;
}
