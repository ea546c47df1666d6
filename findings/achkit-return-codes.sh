#!/usr/bin/env bash
# achkit 0.2.0: its table of return codes ends at R31 and has gaps before.
# Expected: a table offered for return processing names the codes that a bank may send for a corporate debit, as
# R13 (invalid routing number), R21 and R22 (identification), R61 to R77 (dishonoured and contested returns).
# Seen: none of these is in it, and of the change codes C08, C13 and C14 are missing.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund achkit@0.2.0
cat >run.mjs <<'JS'
import { CHANGE_CODES, RETURN_CODES } from 'achkit';
const wanted = ['R13', 'R21', 'R22', 'R61', 'R67', 'R68', 'R69', 'R70', 'R71', 'R74'];
const changes = ['C08', 'C13', 'C14'];
const missing = [...wanted.filter((code) => !(code in RETURN_CODES)), ...changes.filter((code) => !(code in CHANGE_CODES))];
console.log(`${Object.keys(RETURN_CODES).length} return codes, the last ${Object.keys(RETURN_CODES).at(-1)}; missing:`, missing.join(' '));
process.exit(missing.length === wanted.length + changes.length ? 0 : 1);
JS
node run.mjs
