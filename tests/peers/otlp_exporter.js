// SPDX-License-Identifier: Apache-2.0
// OpenTelemetry's own exporters, pushing to a receiver of ours.
//
//   node otlp_exporter.js SIGNAL PROTOCOL URL [NODE]
//
// SIGNAL: metrics, logs or traces; PROTOCOL: grpc, http/protobuf or http/json. Metrics are a counter and
// the health score of NODE; logs two records; traces one span. GZIP=1 compresses; TOKEN is sent as a
// bearer; TLS_CA, TLS_CERT and TLS_KEY are files. Prints one line of JSON: {"code": 0 or 1, "error": …}.
'use strict';
const fs = require('fs');
const grpc = require('@grpc/grpc-js');
const { resourceFromAttributes } = require('@opentelemetry/resources');
const { MeterProvider, MetricReader } = require('@opentelemetry/sdk-metrics');
const { LoggerProvider } = require('@opentelemetry/sdk-logs');
const { BasicTracerProvider } = require('@opentelemetry/sdk-trace-base');
const { CompressionAlgorithm } = require('@opentelemetry/otlp-exporter-base');

const [signal, protocol, url, node] = process.argv.slice(2);
const read = (name) => (process.env[name] ? fs.readFileSync(process.env[name]) : undefined);
const tls = { ca: read('TLS_CA'), cert: read('TLS_CERT'), key: read('TLS_KEY') };
const token = process.env.TOKEN;
const resource = resourceFromAttributes({ 'service.name': 'peer', 'ingero.cluster.id': 'c1', 'ingero.node.id': node || 'n1' });

function settings() {
  const common = { url, timeoutMillis: 8000 };
  if (process.env.GZIP) common.compression = CompressionAlgorithm.GZIP;
  if (protocol === 'grpc') {
    const metadata = new grpc.Metadata();
    if (token) metadata.set('authorization', `Bearer ${token}`);
    const credentials = tls.ca ? grpc.credentials.createSsl(tls.ca, tls.key, tls.cert) : grpc.credentials.createInsecure();
    return { ...common, metadata, credentials };
  }
  return { ...common, headers: token ? { Authorization: `Bearer ${token}` } : {}, httpAgentOptions: tls.ca ? tls : {} };
}

function exporter(name) {
  const kind = { 'grpc': 'grpc', 'http/protobuf': 'proto', 'http/json': 'http' }[protocol];
  const module = require(`@opentelemetry/exporter-${name}-otlp-${kind}`);
  const Class = module[{ metrics: 'OTLPMetricExporter', logs: 'OTLPLogExporter', trace: 'OTLPTraceExporter' }[name]];
  return new Class(settings());
}

function tell(result) {
  const e = result.error;
  const row = { code: result.code, error: e ? String(e.message || e) : '', status: e ? e.code : undefined };
  process.stdout.write(JSON.stringify(row) + '\n', () => process.exit(0));
}

class Reader extends MetricReader {
  async onForceFlush() {}
  async onShutdown() {}
}

async function pushMetrics() {
  const reader = new Reader();
  const provider = new MeterProvider({ resource, readers: [reader] });
  const meter = provider.getMeter('peer');
  meter.createCounter('peer.requests').add(3, { path: '/x' });
  meter.createHistogram('peer.latency').record(0.25);
  meter.createGauge('ingero.node.health_score').record(0.75, { 'ingero.node.state': 'active' });
  const { resourceMetrics } = await reader.collect();
  exporter('metrics').export(resourceMetrics, tell);
}

function pushLogs() {
  const records = [];
  const keep = { onEmit: (r) => records.push(r), forceFlush: async () => {}, shutdown: async () => {} };
  const provider = new LoggerProvider({ resource, processors: [keep] });
  provider.getLogger('peer').emit({ body: 'first', severityNumber: 9 });
  provider.getLogger('peer').emit({ body: 'second \u00e9', attributes: { a: [1, 2] } });
  exporter('logs').export(records, tell);
}

function pushTraces() {
  const spans = [];
  const keep = { onStart() {}, onEnd: (s) => spans.push(s), forceFlush: async () => {}, shutdown: async () => {} };
  const provider = new BasicTracerProvider({ resource, spanProcessors: [keep] });
  provider.getTracer('peer').startSpan('work').end();
  exporter('trace').export(spans, tell);
}

({ metrics: pushMetrics, logs: pushLogs, traces: pushTraces })[signal]();
