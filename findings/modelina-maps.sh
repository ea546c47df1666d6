#!/usr/bin/env bash
# @asyncapi/modelina 5.10.1: classes made from a description of events write maps as empty, and no JSON for a zero in a pair.
# Expected: what marshal() writes is valid against the schema that the class was made from, and unmarshal() reads it back:
# hours by class code are an object with additionalProperties, dollars before and after a pair of integers.
# Seen: the field's type is a Map, which marshal() hands to JSON.stringify, so the hours are lost without an error; 0 in the
# pair leaves nothing after its comma; unmarshal() puts a plain object, without get(), where the type promises a Map.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund @asyncapi/modelina@5.10.1 esbuild@0.28.2
cat >run.mjs <<'JS'
import { writeFileSync } from 'node:fs';
import { TS_COMMON_PRESET, TypeScriptGenerator } from '@asyncapi/modelina';
import { transformSync } from 'esbuild';
const payload = {
  $id: 'PayrollReported',
  type: 'object',
  additionalProperties: false,
  required: ['hours', 'premium'],
  properties: {
    hours: { type: 'object', additionalProperties: { type: 'integer' } },
    premium: { type: 'array', items: [{ type: 'integer' }, { type: 'integer' }], additionalItems: false },
  },
};
const document = {
  asyncapi: '3.0.0',
  info: { title: 'Payroll', version: '1.0.0' },
  channels: { payroll: { address: 'payroll', messages: { reported: { payload } } } },
  operations: { report: { action: 'send', channel: { $ref: '#/channels/payroll' } } },
};
const presets = [{ preset: TS_COMMON_PRESET, options: { marshalling: true } }];
const [{ result }] = await new TypeScriptGenerator({ presets }).generate(document);
writeFileSync('event.mjs', transformSync(`export ${result}`, { loader: 'ts' }).code);
const { PayrollReported } = await import('./event.mjs');
const hours = new Map([['8810', 120], ['5403', 37]]);
const written = new PayrollReported({ hours, premium: [77777, 0] }).marshal();
const read = PayrollReported.unmarshal('{"hours":{"8810":120,"5403":37},"premium":[77777,0]}');
const type = result.match(/_hours: (.*);/)[1];
console.log({ type, written, read: read.hours });
const isAsSeen = written.replaceAll(' ', '') === '{"hours":{},"premium":[77777,]}' && !(read.hours instanceof Map);
process.exit(type === 'Map<string, number>' && isAsSeen ? 0 : 1);
JS
node run.mjs
