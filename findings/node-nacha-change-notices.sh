#!/usr/bin/env bash
# @midlandsbank/node-nacha 0.4.0: a file with a notification of change cannot be read.
# Expected: the bank's COR batch (an entry with a 98 addenda) is read, or refused with a word about the SEC code.
# Seen: a TypeError about a property of undefined; the other batches of the same file are lost with it.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund @midlandsbank/node-nacha@0.4.0
cat >run.cjs <<'JS'
const { from } = require('@midlandsbank/node-nacha');
const text = (value, width) => value.padEnd(width);
const file = (sec) => [
  `101 121042882 0910000192607221200A094101${text('ODFI', 23)}${text('RDFI', 23)}${text('', 8)}`,
  `5225${text('EXAMPLE CO', 16)}${text('', 20)}1234567890${sec}${text('PREMIUM', 10)}${text('', 6)}260723   1091000010000001`,
  `626091000019${text('12345678', 17)}0000000000${text('LEG-1', 15)}${text('EXAMPLE EMPLOYER', 22)}  1091000010000001`,
  `798C01121042880000001      09100001${text('87654321', 44)}091000010000001`,
  `82250000020009100001000000000000000000000000${'1234567890'}${text('', 25)}091000010000001`,
  `9000001000001000000020009100001000000000000000000000000${text('', 39)}`,
  ...Array(4).fill('9'.repeat(94)),
].join('\n');
const read = (sec) => {
  try {
    return `read ${from(file(sec)).data.batches.length} batch`;
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
};
console.log('CCD:', read('CCD'));
console.log('COR:', read('COR'));
process.exit(read('CCD') === 'read 1 batch' && read('COR').startsWith('TypeError') ? 0 : 1);
JS
node run.cjs
