#!/usr/bin/env bash
# @midlandsbank/node-nacha 0.4.0: numbers of a bank whose routing number begins with zero lose the zero.
# Expected: identifications are text: the receiving bank of the entry is 09100001, its trace number 091000010000001.
# Seen: both are JavaScript numbers, 9100001 and 91000010000001, while the same bank in the batch header is text.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund @midlandsbank/node-nacha@0.4.0
cat >run.cjs <<'JS'
const { from } = require('@midlandsbank/node-nacha');
const text = (value, width) => value.padEnd(width);
const file = [
  `101 121042882 0910000192607221200A094101${text('ODFI', 23)}${text('RDFI', 23)}${text('', 8)}`,
  `5225${text('EXAMPLE CO', 16)}${text('', 20)}1234567890CCD${text('PREMIUM', 10)}${text('', 6)}260723   1091000010000001`,
  `627091000019${text('12345678', 17)}0000077777${text('LEG-1', 15)}${text('EXAMPLE EMPLOYER', 22)}  0091000010000001`,
  `82250000010009100001000000077777000000000000${'1234567890'}${text('', 25)}091000010000001`,
  `9000001000001000000010009100001000000077777000000000000${text('', 39)}`,
  ...Array(5).fill('9'.repeat(94)),
].join('\n');
const [batch] = from(file).data.batches;
const [{ receivingDFIIdentification: bank, traceNumber: trace }] = batch.entries;
console.log('entry:', bank, trace, '- batch header:', JSON.stringify(batch.originatingDFIIdentification));
process.exit(bank === 9100001 && trace === 91000010000001 && batch.originatingDFIIdentification === '09100001' ? 0 : 1);
JS
node run.cjs
