#!/usr/bin/env bash
# date-holidays 3.37.0: the United States' list is not the calendar by which banks settle.
# Expected of someone who computes settlement days: the type "bank" or "public" names the Federal Reserve's holidays. The
# Federal Reserve does not move a Saturday's holiday to the Friday: it settles on 2026-07-03 and on 2027-12-31.
# Seen: no entry has the type "bank", and both Fridays are public holidays (substitute days, as for federal employees).
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund date-holidays@3.37.0
cat >run.cjs <<'JS'
const Holidays = require('date-holidays');
const list = [2026, 2027].flatMap((year) => new Holidays('US').getHolidays(year));
const fridays = list.filter(({ date, type }) => /^(2026-07-03|2027-12-31)/.test(date) && type === 'public');
console.log('types:', [...new Set(list.map(({ type }) => type))].join(' '));
for (const { date, name, substitute } of fridays) console.log(date, name, { substitute });
process.exit(fridays.length === 2 && !list.some(({ type }) => type === 'bank') ? 0 : 1);
JS
node run.cjs
