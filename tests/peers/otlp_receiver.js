// SPDX-License-Identifier: Apache-2.0
// A receiver of OTLP metrics that decodes with OpenTelemetry's own generated code and gRPC's own
// server. One line of JSON on stdout for each attempt; the first line says the ports.
//
//   node otlp_receiver.js [ANSWER…]
//
// ANSWER is what the next attempt gets: a status of HTTP (503, 503/2 with Retry-After: 2, or
// partial), or of gRPC (grpc14). When they are used up, all is well. TLS_DIR: server.pem, server.key
// and, if clients must show a certificate, ca.pem.
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js');
const { ExportMetricsServiceRequest: Request, ExportMetricsServiceResponse: Response } =
  opentelemetry.proto.collector.metrics.v1;

const answers = process.argv.slice(2);
const tls = process.env.TLS_DIR;
const file = (name) => path.join(tls, name);
const wantsClients = tls && fs.existsSync(file('ca.pem'));

function tell(row) {
  process.stdout.write(JSON.stringify(row) + '\n');
}

function plain(request) {
  const fault = Request.verify(request);
  return { fault, request: Request.toObject(request, { longs: String, enums: Number, defaults: false }) };
}

function takeHttp(q, body, reply) {
  const answer = answers.shift() || '200';
  const isJson = q.headers['content-type'] === 'application/json';
  const row = { via: isJson ? 'http/json' : 'http/protobuf', answer, path: q.url, headers: q.headers,
    protocol: q.httpVersion };
  try {
    if (isJson) {
      row.raw = JSON.parse(body);
      Object.assign(row, plain(Request.fromObject(row.raw)));
    } else {
      Object.assign(row, plain(Request.decode(body)));
    }
  } catch (e) {
    row.fault = String(e);
  }
  tell(row);
  const partial = answer === 'partial' ? { partialSuccess: { rejectedDataPoints: 3, errorMessage: 'no \u001b[2J' } } : {};
  const [status, after] = answer === 'partial' ? [200] : answer.split('/').map(Number);
  if (after) reply.setHeader('retry-after', String(after));
  reply.statusCode = status;
  reply.setHeader('content-type', q.headers['content-type']);
  reply.end(isJson ? JSON.stringify(partial) : Buffer.from(Response.encode(Response.fromObject(partial)).finish()));
}

function onHttp(q, reply) {
  const parts = [];
  q.on('data', (part) => parts.push(part));
  q.on('end', () => takeHttp(q, Buffer.concat(parts), reply));
}

const service = {
  Export: {
    path: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
    requestStream: false,
    responseStream: false,
    requestDeserialize: (bytes) => Request.decode(bytes),
    requestSerialize: (m) => Buffer.from(Request.encode(m).finish()),
    responseSerialize: (m) => Buffer.from(Response.encode(Response.fromObject(m)).finish()),
    responseDeserialize: (bytes) => Response.decode(bytes),
  },
};

function onGrpc(call, done) {
  const answer = answers.shift() || 'grpc0';
  tell({ via: 'grpc', answer, headers: call.metadata.getMap(), ...plain(call.request) });
  if (answer === 'partial') {
    done(null, { partialSuccess: { rejectedDataPoints: 3, errorMessage: 'no' } });
  } else if (answer.startsWith('grpc') && answer !== 'grpc0') {
    done({ code: Number(answer.slice(4)), details: 'not now' });
  } else {
    done(null, {});
  }
}

const server = tls
  ? https.createServer({ cert: fs.readFileSync(file('server.pem')), key: fs.readFileSync(file('server.key')),
    minVersion: 'TLSv1.3', requestCert: wantsClients, rejectUnauthorized: wantsClients,
    ca: wantsClients ? fs.readFileSync(file('ca.pem')) : undefined }, onHttp)
  : http.createServer(onHttp);
const credentials = tls
  ? grpc.ServerCredentials.createSsl(wantsClients ? fs.readFileSync(file('ca.pem')) : null,
    [{ cert_chain: fs.readFileSync(file('server.pem')), private_key: fs.readFileSync(file('server.key')) }], wantsClients)
  : grpc.ServerCredentials.createInsecure();
const grpcServer = new grpc.Server();
grpcServer.addService(service, { Export: onGrpc });
server.listen(Number(process.env.HTTP_PORT || 0), '127.0.0.1', () => {
  grpcServer.bindAsync('127.0.0.1:0', credentials, (error, port) => {
    if (error) throw error;
    tell({ http: server.address().port, grpc: port });
  });
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
