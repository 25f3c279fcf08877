"""Inserts a row after another into whichever PostgreSQL is primary, and prints the number of each
row whose insert was acknowledged. A number is used once: whether a row that was not acknowledged
is there is not known. Arguments: a connection string with all nodes. Ends with its standard input.
"""

import sys
import threading
import time

import psycopg

connection_string = sys.argv[1]
stopped = threading.Event()


def wait_for_end() -> None:
    sys.stdin.read()
    stopped.set()


threading.Thread(target=wait_for_end, daemon=True).start()
row = 0
while not stopped.is_set():
    try:
        with psycopg.connect(connection_string, autocommit=True, connect_timeout=3) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS acknowledged (row int PRIMARY KEY)")
            while not stopped.is_set():
                row += 1
                connection.execute("INSERT INTO acknowledged VALUES (%s)", (row,))
                print(row, flush=True)
                time.sleep(0.02)
    except psycopg.Error as error:
        print(f"not acknowledged: {row}: {str(error).strip()}", file=sys.stderr, flush=True)
        time.sleep(0.1)
