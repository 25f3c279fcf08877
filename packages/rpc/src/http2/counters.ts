/**
 * What the engine has seen and refused since it started: plain numbers, read when someone asks. One
 * object for all connections of a server.
 */
export class EngineCounters {
  /** Connections that spoke HTTP/2, and those of them that are open. */
  connections = 0;
  openConnections = 0;
  /** Requests that got a stream, and streams that are open. */
  streams = 0;
  openStreams = 0;
  /** Streams that the client reset before they were answered. */
  resetsReceived = 0;
  /** Streams that we refused because the connection had as many as it may have. */
  refusedStreams = 0;
  /** Requests and answers that broke a rule of HTTP/2, on a stream or for the whole connection. */
  streamErrors = 0;
  connectionErrors = 0;
  /** Header blocks that could not be decoded. */
  compressionErrors = 0;
  /** Connections ended because of too many resets, or too many frames that move nothing. */
  resetFloods = 0;
  frameFloods = 0;
  /** Connections ended because of a header block that did not end, in bytes or in frames. */
  headerBlockFloods = 0;
  /** Requests refused because their headers were too long. */
  headerListsTooLarge = 0;
  /**
   * Requests refused because requests being received or worked on hold too much memory, of their
   * connection or of all.
   */
  heldBytesRefusals = 0;
  /**
   * Requests refused because open streams and their headers take too much memory, of their
   * connection or of all.
   */
  headBytesRefusals = 0;
  /**
   * Streams cut off because what waits to be sent takes too much memory, of their connection or of
   * all.
   */
  pendingBytesRefusals = 0;
  /** Connections ended because they held the most while all together held too much. */
  largestHolderCuts = 0;
  /** Connections ended because another client needed a slot. */
  shedConnections = 0;
  /** Connections ended because finished answers were not taken for too long. */
  sendStalls = 0;
  /**
   * Connections ended because the preface, a frame or a header block did not become whole in time.
   */
  prefaceTimeouts = 0;
  frameTimeouts = 0;
  /** Connections ended because the client pinged too often, or did not answer a ping. */
  pingFloods = 0;
  keepAliveTimeouts = 0;
}
