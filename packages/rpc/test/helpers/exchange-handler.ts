/** A test's handler as the engine takes it. */
import { type HttpExchangeHandler, type HttpHandler, type Logger, wholeBody } from "@quorate/host";

export interface HttpUnderTest {
  readonly http?: HttpHandler;
  readonly exchange?: HttpExchangeHandler;
  readonly maxHttpBodyBytes?: number;
}

const NOT_FOUND: HttpHandler = () => ({ status: 404, headers: {}, body: "404 page not found\n" });

export function exchangeHandler(what: HttpUnderTest, logger: Logger): HttpExchangeHandler {
  if (what.exchange !== undefined) return what.exchange;
  return wholeBody(
    what.http ?? NOT_FOUND,
    what.maxHttpBodyBytes ?? 1024 * 1024,
    ({ method, path }, error) => {
      const text = error instanceof Error ? error.message : String(error);
      logger.warn("failed to handle HTTP request", { method, path, error: text });
    },
  );
}
