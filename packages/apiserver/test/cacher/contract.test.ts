/** A Cacher over EtcdStore over a fake cluster passes the contract of all storages. */
import { SeededRandom, silentLogger } from "@quorate/host";
import { realClock } from "@quorate/host/node";
import {
  EXAMPLE_POD,
} from "../../testing/index.ts";
