#!/usr/bin/env bash
# fedach 0.2.0: a FedACH directory with line ends of Unix is an empty directory.
# Expected: the records are 155 characters wide, so the bank is read whatever ends the line, or the text is refused.
# Seen: with CR LF one bank, with LF none, and no error; whoever looks a bank up finds that it does not exist.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund fedach@0.2.0
cat >run.cjs <<'JS'
const { parse } = require('fedach');
const text = (value, width) => value.padEnd(width);
const record =
  `091000019O0910000801040125000000000${text('EXAMPLE BANK', 36)}${text('1 EXAMPLE STREET', 36)}` +
  `${text('MINNEAPOLIS', 20)}MN554790000800555010011${text('', 5)}`;
const banks = (end) => parse(record + end).length;
console.log(`${record.length} characters; CR LF: ${banks('\r\n')} bank, LF: ${banks('\n')}`);
process.exit(record.length === 155 && banks('\r\n') === 1 && banks('\n') === 0 ? 0 : 1);
JS
node run.cjs
