/** Contract suites and fakes of the API server's interfaces. */
