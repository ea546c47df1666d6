#!/usr/bin/env bash
# cloudevents 10.0.0: the SDK writes another time than the event has, and reads a payload of 0 or false as none.
# Expected: an attribute is written as its canonical string (CloudEvents HTTP binding 1.0.2, 3.1.3.2; a time is any RFC 3339
# timestamp, with its fraction, as PostgreSQL's are to the microsecond), and "data" of the JSON format is any JSON value (3.1).
# Seen: the event keeps what it was given, each message has milliseconds in UTC, so two changes of a policy 400 µs apart come
# out as simultaneous and in no order; what the SDK wrote as 0 or false in a structured message it reads as undefined.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund cloudevents@10.0.0
cat >run.mjs <<'JS'
import { CloudEvent, HTTP } from 'cloudevents';
const attributes = { id: '1', source: '/policies/7', type: 'balance.changed', datacontenttype: 'application/json' };
const times = ['2026-07-22T10:00:00.123100-05:00', '2026-07-22T10:00:00.123500-05:00'];
const written = times.map((time) => {
  const event = new CloudEvent({ ...attributes, time, data: { due: 1 } });
  const binary = HTTP.binary(event).headers['ce-time'];
  const structured = JSON.parse(HTTP.structured(event).body).time;
  console.log('event:', event.time, 'binary:', binary, 'structured:', structured);
  return [binary, structured];
});
const lost = [0, false, { due: 0 }].filter((data) => {
  const message = HTTP.structured(new CloudEvent({ ...attributes, data }));
  const read = HTTP.toEvent(message).data;
  console.log('written:', JSON.parse(message.body).data, 'read:', read);
  return read === undefined;
});
process.exit(written.flat().every((time) => time === '2026-07-22T15:00:00.123Z') && lost.length === 2 ? 0 : 1);
JS
node run.mjs
