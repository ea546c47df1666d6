#!/usr/bin/env bash
# achkit 0.2.0: entries of two batches of one file have the same trace number.
# Expected: a return names its entry by the original trace number alone, so an originator's file has each one once.
# Seen: the sequence begins at 1 again in each batch; a return of 091000010000001 may mean either debit.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund achkit@0.2.0
cat >run.mjs <<'JS'
import { AchFile, parse, validate } from 'achkit';
const file = AchFile.create({ originDfi: '091000019', companyId: '1234567890' });
for (const effectiveDate of ['2026-07-22', '2026-07-23'])
  file
    .batch({ sec: 'CCD', description: 'PREMIUM', effectiveDate })
    .debit({ name: 'EXAMPLE EMPLOYER', routing: '011401533', account: '12345678', amountCents: 77777 });
const bytes = file.render();
const traces = parse(bytes).batches.flatMap(({ entries }) => entries.map(({ traceNumber }) => traceNumber));
console.log('valid:', validate(bytes).ok, 'trace numbers:', traces.join(' '));
process.exit(traces.length === 2 && traces[0] === traces[1] ? 0 : 1);
JS
node run.mjs
