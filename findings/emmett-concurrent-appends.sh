#!/usr/bin/env bash
# @event-driven-io/emmett-postgresql 0.42.0: a consumer skips events that were appended concurrently.
# Expected: a consumer that begins at the beginning, after the last append was answered, gets every event.
# Seen: events whose positions and transactions are in unlike orders are passed over at the ends of pages; how many
# depends on the run, that some are missing does not (it tries up to five times before it says that this has changed).
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
# the server runs as a user of its own, where this is run by root
chmod 755 "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @event-driven-io/emmett@0.42.0 @event-driven-io/emmett-postgresql@0.42.0 \
  @event-driven-io/dumbo@0.12.7 pg@8.23.1 embedded-postgres@17.10.0-beta.17
cat >run.mjs <<'JS'
import { createServer } from 'node:net';
import { getPostgreSQLEventStore } from '@event-driven-io/emmett-postgresql';
import EmbeddedPostgres from 'embedded-postgres';

const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});
const server = new EmbeddedPostgres({
  databaseDir: './data',
  user: 'postgres',
  password: 'example',
  port,
  persistent: true,
  createPostgresUser: true,
  onLog: () => {},
});
await server.initialise();
await server.start();
let skipped = 0;
for (let attempt = 0; attempt < 5 && skipped === 0; attempt++) {
  const database = `attempt${attempt}`;
  await server.createDatabase(database);
  const store = getPostgreSQLEventStore(`postgresql://postgres:example@127.0.0.1:${port}/${database}`);
  await store.schema.migrate();
  const lanes = 20;
  const append = async (lane) => {
    for (let n = lane; n < 400; n += lanes) {
      const events = Array.from({ length: 5 }, (_, i) => ({ type: 'HoursRecorded', data: { n, i } }));
      await store.appendToStream(`timesheet-${n}`, events);
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => append(lane)));
  const seen = new Set();
  const consumer = store.consumer({ stopWhen: { noMessagesLeft: true } });
  consumer.reactor({
    processorId: 'count',
    startFrom: 'BEGINNING',
    eachMessage: ({ data }) => {
      seen.add(`${data.n}/${data.i}`);
    },
  });
  await consumer.start();
  await store.close();
  skipped = 2_000 - seen.size;
  console.log(`appended 2000, delivered ${seen.size}`);
}
// pools of the store may outlive its close: what the server's end does to them is no part of this
process.on('uncaughtException', () => {});
await server.stop();
process.exit(skipped > 0 ? 0 : 1);
JS
node run.mjs
