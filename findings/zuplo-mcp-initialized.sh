#!/usr/bin/env bash
# @zuplo/mcp 0.0.32: the handshake of a client of the Model Context Protocol, revision 2025-11-25.
# Expected: notifications/initialized has no id, and later requests have the header MCP-Protocol-Version
# (basic/lifecycle, basic/index and basic/transports of that revision).
# Seen: the notification has an id, so that a server must answer it; no request has the header.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund @zuplo/mcp@0.0.32
cat >run.mjs <<'JS'
import { createServer } from 'node:http';
import { MCPClient } from '@zuplo/mcp/client';
import { HTTPClientTransport } from '@zuplo/mcp/transport/httpclient';
const seen = [];
const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'server', version: '1' } },
  'tools/list': { tools: [] },
};
const server = createServer(async (request, response) => {
  const { id, method } = JSON.parse(Buffer.concat(await request.toArray()).toString());
  seen.push({ method, id, version: request.headers['mcp-protocol-version'] ?? null });
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
}).listen(0, '127.0.0.1', async () => {
  const client = new MCPClient({ name: 'client', version: '1' });
  await client.connect(new HTTPClientTransport({ url: `http://127.0.0.1:${server.address().port}/mcp` }));
  await client.initialize('2025-11-25');
  await client.listTools();
  while (seen.length < 3) await new Promise(setImmediate);
  for (const one of seen) console.log(JSON.stringify(one));
  const notification = seen.find(({ method }) => method === 'notifications/initialized');
  process.exit(typeof notification.id === 'number' && seen.every(({ version }) => version === null) ? 0 : 1);
});
JS
node run.mjs
