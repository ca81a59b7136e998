import { cpuScenarios } from './cpu.mjs';
import { latency } from './latency.mjs';
import { mixed } from './mixed.mjs';
import { start } from './start.mjs';
import { streams } from './streams.mjs';

const ofCpu = (name) => cpuScenarios.find((scenario) => scenario.name === name);

/** In the order of the report. */
export const scenarios = [
  ofCpu('unary-400b'),
  ofCpu('unary-100kb'),
  ofCpu('unary-1mb'),
  ofCpu('unary-10mb'),
  ofCpu('sse'),
  ofCpu('sse-think'),
  latency,
  streams,
  mixed,
  start,
  ofCpu('big-config'),
  ofCpu('consumers'),
  ofCpu('session'),
  ofCpu('failover'),
];
