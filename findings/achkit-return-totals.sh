#!/usr/bin/env bash
# achkit 0.2.0: a valid file that returns a debit fails its validation.
# Expected: transaction code 26 (return of a checking debit: 27 or 28) counts as a debit in the batch and file control
# totals, as the Nacha rules have it; the package's readme says that returns are included.
# Seen: the validator sums the debit totals without the return, so it wants a total of 0 and refuses the bank's file.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund achkit@0.2.0
cat >run.mjs <<'JS'
import { validate } from 'achkit';
const text = (value, width) => value.padEnd(width);
const file = (code) => [
  `101 121042882 0910000192607221200A094101${text('ODFI', 23)}${text('RDFI', 23)}${text('', 8)}`,
  `5225${text('EXAMPLE CO', 16)}${text('', 20)}1234567890CCD${text('PREMIUM', 10)}${text('', 6)}260723   1091000010000001`,
  `6${code}091000019${text('12345678', 17)}0000077777${text('LEG-1', 15)}${text('EXAMPLE EMPLOYER', 22)}  1091000010000001`,
  `799R01121042880000001      09100001${text('', 44)}091000010000001`,
  `82250000020009100001000000077777000000000000${'1234567890'}${text('', 25)}091000010000001`,
  `9000001000001000000020009100001000000077777000000000000${text('', 39)}`,
  ...Array(4).fill('9'.repeat(94)),
];
const checked = (code) => validate(`${file(code).join('\n')}\n`);
const asDebit = checked('27');
const asReturn = checked('26');
console.log('code 27:', JSON.stringify(asDebit));
console.log('code 26:', JSON.stringify(asReturn));
const codes = asReturn.errors.map(({ code }) => code).join();
process.exit(asDebit.ok && codes === 'BAD_BATCH_DEBIT,BAD_FILE_DEBIT' ? 0 : 1);
JS
node run.mjs
