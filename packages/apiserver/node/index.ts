/** The API server over sockets and files. */
