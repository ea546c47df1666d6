#!/usr/bin/env bash
# PostgreSQL 17 (in @electric-sql/pglite 0.3.11): hash_record_extended of rows with jsonb columns.
# Expected: hashes of rows tell whether two tables hold the same documents, but for rare collisions.
# Seen: two list entries 32 apart may be exchanged, equal entries 32 apart may change together, and null, {} and [] in a
# row hash alike: such rows differ and have one hash. Equality itself (=) tells all of them apart.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund @electric-sql/pglite@0.3.11
cat >run.mjs <<'JS'
import { PGlite } from '@electric-sql/pglite';
const db = new PGlite();
const list = (values) => JSON.stringify(Array.from({ length: 33 }, (_, at) => values[at] ?? 'same'));
const pairs = {
  'entries 1 and 33 exchanged': [list({ 0: 'paid', 32: 'returned' }), list({ 0: 'returned', 32: 'paid' })],
  'entries 1 and 33 changed together': [list({ 0: 'paid', 32: 'paid' }), list({ 0: 'returned', 32: 'returned' })],
  'an empty object, an empty list': ['{}', '[]'],
  'an empty object, null': ['{}', null],
};
const { rows: [{ version }] } = await db.query("SELECT current_setting($1) AS version", ["server_version"]);
console.log(`PostgreSQL ${version}`);
let isAsSeen = true;
for (const [what, [one, other]] of Object.entries(pairs)) {
  const { rows: [row] } = await db.query(
    `SELECT hash_record_extended(row($1::jsonb), 0) = hash_record_extended(row($2::jsonb), 0) AS one_hash,
       $1::jsonb IS NOT DISTINCT FROM $2::jsonb AS equal`, [one, other]);
  console.log(`${what}: ${JSON.stringify(row)}`);
  isAsSeen &&= row.one_hash && !row.equal;
}
process.exit(isAsSeen ? 0 : 1);
JS
node run.mjs
