/** The HTTP/1.1 engine's counters since its start: one object for all connections of a server. */
export class Http1Counters {
  /** HTTP/1 connections since the start, and those that are open. */
  connections = 0;
  openConnections = 0;
  /** Requests whose head was complete, and those that are being served. */
  requests = 0;
  openRequests = 0;
  /** Connections that were taken over by another protocol (WebSocket). */
  upgrades = 0;
  /** Requests that broke a rule of HTTP/1.1, which ended their connections. */
  malformedRequests = 0;
  /** Requests refused because their headers, or the trailers of a body, were too long. */
  headersTooLarge = 0;
  /** Requests that were not complete in time. */
  requestTimeouts = 0;
}
