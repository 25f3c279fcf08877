/**
 * What one member may spend of its machine, computed in one place from the memory and the file
 * descriptors that its process may use.
 *
 *     memory:  requests | open streams | answers being built | answers waiting | sockets | watches
 *              | events waiting   at most 60 %, chosen by clients
 *              the log | entries not committed | proposals not accepted   at most 16 %
 *              the rest is for the index, the store's batch and the collector
 *     files:   LevelDB, the log, snapshots | the peer port | HTTP-only ports | client ports
 *
 * On a large machine each budget ends at a ceiling of its own, so that one member never plans for
 * tens of GiB.
 */

/** What a process may use. */
export interface MachineLimits {
  /**
   * Memory in bytes: the cgroup's limit where there is one, else the machine's memory. 0 or less:
   * not known.
   */
  readonly memoryBytes: number;
  /** File descriptors that may be open (RLIMIT_NOFILE). 0 or less: not known. */
  readonly openFiles: number;
}

/** The bounds of a member. "Client" is one identity: a certificate's common name, or an address. */
export interface Budgets {
  /** Requests that are being received or worked on: of all connections, of one. */
  readonly requestsTotalBytes: number;
  readonly requestsConnectionBytes: number;
  /** Open streams and their headers: of all connections, of one. */
  readonly headersTotalBytes: number;
  readonly headersConnectionBytes: number;
  /** Answers while they are built: of all clients, of one. */
  readonly builtAnswersTotalBytes: number;
  readonly builtAnswersClientBytes: number;
  /** Answers that wait for the clients' windows: of all connections, of one. */
  readonly answersTotalBytes: number;
  readonly answersConnectionBytes: number;
  /** What was given to sockets and has not left. */
  readonly unsentTotalBytes: number;
  /** Watches with their keys: of all clients, of one. */
  readonly watchesTotalBytes: number;
  readonly watchesClientBytes: number;
  /** Callers that wait for locks and elections: of all clients, of one. */
  readonly contestsTotalBytes: number;
  readonly contestsClientBytes: number;
  /** Events that wait for clients that read more slowly than they come. */
  readonly watchBacklogTotalBytes: number;
  /** Applied entries that stay in memory, and those of them kept for slow followers. */
  readonly logTotalBytes: number;
  readonly logCatchUpBytes: number;
  /** Entries that are proposed and not committed. */
  readonly uncommittedTotalBytes: number;
  /** Payloads of proposals that no leader has accepted. */
  readonly queuedProposalsTotalBytes: number;
  /**
   * Connections on the client ports, on the ports for HTTP alone (metrics, health), and on the peer
   * port.
   */
  readonly clientConnections: number;
  readonly httpConnections: number;
  readonly peerConnections: number;
}

const MIB = 1024 * 1024;

/** Taken where the memory, or the number of files, is not known. */
const UNKNOWN_MEMORY_BYTES = 2048 * MIB;
const UNKNOWN_OPEN_FILES = 4096;
/** A member does not run in less; budgets below this would refuse single requests. */
const LEAST_MEMORY_BYTES = 256 * MIB;

/** Each budget's share of the memory, in thousandths, and its ceiling. */
const MEMORY_SHARES = {
  requests: { thousandths: 100, maxBytes: 512 * MIB },
  headers: { thousandths: 40, maxBytes: 256 * MIB },
  builtAnswers: { thousandths: 120, maxBytes: 1024 * MIB },
  answers: { thousandths: 150, maxBytes: 1024 * MIB },
  unsent: { thousandths: 60, maxBytes: 512 * MIB },
  watches: { thousandths: 50, maxBytes: 1024 * MIB },
  contests: { thousandths: 20, maxBytes: 256 * MIB },
  watchBacklog: { thousandths: 60, maxBytes: 256 * MIB },
  log: { thousandths: 80, maxBytes: 256 * MIB },
  uncommitted: { thousandths: 40, maxBytes: 256 * MIB },
  queuedProposals: { thousandths: 40, maxBytes: 256 * MIB },
} as const;

/** What all shares together may be. */
export const MAX_BUDGETED_THOUSANDTHS = 760;

/**
 * LevelDB keeps up to a fifth of the files open, at most so many; the log, snapshots and outgoing
 * connections need some more.
 */
const MAX_STORE_FILES = 1024;
const OTHER_FILES = 128;
const MAX_CLIENT_CONNECTIONS = 16_384;
const MAX_HTTP_CONNECTIONS = 1024;
const MAX_PEER_CONNECTIONS = 1024;
/** Less than this makes no cluster, and no monitoring, however few files there are. */
const LEAST_CONNECTIONS = 16;

/**
 * The budgets of a member on such a machine. Never throws: a limit that is not known, or absurdly
 * low, counts as a modest one.
 */
export function budgetsFor(machine: MachineLimits): Budgets {
  const memoryBytes = Math.max(
    LEAST_MEMORY_BYTES,
    machine.memoryBytes > 0 ? machine.memoryBytes : UNKNOWN_MEMORY_BYTES,
  );
  const share = (name: keyof typeof MEMORY_SHARES): number => {
    const { thousandths, maxBytes } = MEMORY_SHARES[name];
    return Math.min(maxBytes, Math.floor((memoryBytes * thousandths) / 1000));
  };
  const requests = share("requests");
  const headers = share("headers");
  const built = share("builtAnswers");
  const answers = share("answers");
  const watches = share("watches");
  const contests = share("contests");
  const log = share("log");
  return {
    requestsTotalBytes: requests,
    requestsConnectionBytes: Math.min(64 * MIB, requests >>> 2),
    headersTotalBytes: headers,
    headersConnectionBytes: Math.min(64 * MIB, headers >>> 2),
    builtAnswersTotalBytes: built,
    builtAnswersClientBytes: built >>> 1,
    answersTotalBytes: answers,
    answersConnectionBytes: Math.min(256 * MIB, answers >>> 1),
    unsentTotalBytes: share("unsent"),
    watchesTotalBytes: watches,
    watchesClientBytes: watches >>> 1,
    contestsTotalBytes: contests,
    contestsClientBytes: contests >>> 1,
    watchBacklogTotalBytes: share("watchBacklog"),
    logTotalBytes: log,
    logCatchUpBytes: log >>> 2,
    uncommittedTotalBytes: share("uncommitted"),
    queuedProposalsTotalBytes: share("queuedProposals"),
    ...connectionsFor(machine.openFiles > 0 ? machine.openFiles : UNKNOWN_OPEN_FILES),
  };
}

function connectionsFor(
  openFiles: number,
): Pick<Budgets, "clientConnections" | "httpConnections" | "peerConnections"> {
  const files = Math.min(MAX_STORE_FILES, Math.ceil(openFiles / 5)) + OTHER_FILES;
  const sockets = Math.max(0, openFiles - files);
  const within = (wanted: number, most: number) =>
    Math.max(LEAST_CONNECTIONS, Math.min(most, Math.floor(wanted)));
  const peerConnections = within(sockets / 8, MAX_PEER_CONNECTIONS);
  const httpConnections = within(sockets / 8, MAX_HTTP_CONNECTIONS);
  return {
    peerConnections,
    httpConnections,
    clientConnections: within(sockets - peerConnections - httpConnections, MAX_CLIENT_CONNECTIONS),
  };
}
