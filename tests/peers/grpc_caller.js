// SPDX-License-Identifier: Apache-2.0
// gRPC's own client, with calls that a test describes.
//
//   node grpc_caller.js HOST:PORT < CALLS
//
// CALLS: a JSON list of {"path", "body" (base64), "token", "gzip", "deadline_s"}, made one after the other.
// Prints a JSON list: {"code", "details", "reply" (base64), "headers", "trailers", "info" (base64 of
// grpc-status-details-bin)}. TLS_CA, TLS_CERT and TLS_KEY are files.
'use strict';
const fs = require('fs');
const grpc = require('@grpc/grpc-js');

const read = (name) => (process.env[name] ? fs.readFileSync(process.env[name]) : undefined);
const ca = read('TLS_CA');
const credentials = ca ? grpc.credentials.createSsl(ca, read('TLS_KEY'), read('TLS_CERT')) : grpc.credentials.createInsecure();
const plain = new grpc.Client(process.argv[2], credentials);
const zipped = new grpc.Client(process.argv[2], credentials, { 'grpc.default_compression_algorithm': 2 });

function make(call) {
  return new Promise((resolve) => {
    const row = { headers: {}, trailers: {} };
    const metadata = new grpc.Metadata();
    if (call.token) metadata.set('authorization', `Bearer ${call.token}`);
    const options = { deadline: Date.now() + 1000 * (call.deadline_s || 20) };
    const same = (bytes) => bytes;
    const body = Buffer.from(call.body || '', 'base64');
    const under = (call.gzip ? zipped : plain).makeUnaryRequest(call.path, same, same, body, metadata, options, (error, reply) => {
      if (reply) row.reply = Buffer.from(reply).toString('base64');
    });
    under.on('metadata', (m) => { row.headers = m.getMap(); });
    under.on('status', (s) => {
      const info = s.metadata.get('grpc-status-details-bin');
      s.metadata.remove('grpc-status-details-bin');
      Object.assign(row, { code: s.code, details: s.details, trailers: s.metadata.getMap() });
      if (info.length) row.info = Buffer.from(info[0]).toString('base64');
      setImmediate(() => resolve(row));
    });
  });
}

async function main() {
  const rows = [];
  for (const call of JSON.parse(fs.readFileSync(0))) rows.push(await make(call));
  process.stdout.write(JSON.stringify(rows) + '\n', () => process.exit(0));
}
main();
