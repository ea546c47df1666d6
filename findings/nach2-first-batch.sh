#!/usr/bin/env bash
# nach2 0.5.1: the first batch has number 0, and every file begins with the same trace number.
# Expected: batch numbers begin at 1 in each file, as banks that check the order want it, and two files of one process do
# not share trace numbers: a return names its entry by that number alone.
# Seen: the first batch is 0000000 and the first entry of both files has the trace number 121042880000000.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund nach2@0.5.1
cat >run.cjs <<'JS'
const { Batch, Entry, File } = require('nach2');
const made = () => {
  const file = new File({
    immediateDestination: '091000019',
    immediateOrigin: '121042882',
    immediateDestinationName: 'EXAMPLE BANK',
    immediateOriginName: 'EXAMPLE CO',
    referenceCode: '#A000001',
  });
  const batch = new Batch({
    serviceClassCode: '225',
    companyName: 'EXAMPLE CO',
    standardEntryClassCode: 'CCD',
    companyIdentification: '1234567890',
    companyEntryDescription: 'PREMIUM',
    companyDescriptiveDate: 'Jul 22',
    effectiveEntryDate: new Date(2026, 6, 23),
    originatingDFI: '12104288',
  });
  const entry = { receivingDFI: '322271627', DFIAccount: '12345678', amount: '777.77', idNumber: 'LEG-1' };
  batch.addEntry(new Entry({ ...entry, individualName: 'EXAMPLE EMPLOYER', discretionaryData: '  ', transactionCode: '27' }));
  file.addBatch(batch);
  let lines;
  file.generateFile((text) => {
    lines = text.split('\r\n');
  });
  return { batch: lines[1].slice(87), trace: lines[2].slice(79) };
};
const files = [made(), made()];
console.log(files);
process.exit(files.every(({ batch }) => batch === '0000000') && files.every(({ trace }) => trace === '121042880000000') ? 0 : 1);
JS
node run.cjs
