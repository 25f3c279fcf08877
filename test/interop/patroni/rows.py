"""Prints the rows that one PostgreSQL has. Argument: a connection string."""

import sys

import psycopg

with psycopg.connect(sys.argv[1], connect_timeout=10) as connection:
    for (row,) in connection.execute("SELECT row FROM acknowledged ORDER BY row"):
        print(row)
