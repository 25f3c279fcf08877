/** The static table (RFC 7541 appendix A). */
import { HeaderField } from "./header-field.ts";

const NAMES_AND_VALUES = `
:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`;

/** The number of entries; their indexes start at 1. */
export const STATIC_TABLE_LENGTH = 61;

/** Entry i is at [i]; [0] is not an entry. */
export const STATIC_TABLE: readonly HeaderField[] = NAMES_AND_VALUES.split("\n").map((line) => {
  const space = line.indexOf(" ");
  return space === -1
    ? new HeaderField(line, "")
    : new HeaderField(line.slice(0, space), line.slice(space + 1));
});

if (STATIC_TABLE.length !== STATIC_TABLE_LENGTH + 1)
  throw new Error("the static table has 61 entries");
