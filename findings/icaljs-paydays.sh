#!/usr/bin/env bash
# ical.js 2.2.1: a payday that moves before the weekend becomes three paydays.
# Expected: "the 15th, or the last working day before it" is the last of the working days among the 13th, 14th and 15th:
# BYSETPOS=-1 takes one date of each month's set, which the other parts made before (RFC 5545, 3.3.10). rrule 2.8.1 has it so.
# Seen: the days of the set come out one by one as soon as it has several; a fortnightly rule has every weekday.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund ical.js@2.2.1 rrule@2.8.1
cat >run.mjs <<'JS'
import ICAL from 'ical.js';
import rrule from 'rrule';
const weekdays = 'BYDAY=MO,TU,WE,TH,FR';
const rules = {
  'the 15th or before': ['2026-01-15', `FREQ=MONTHLY;${weekdays};BYMONTHDAY=13,14,15;BYSETPOS=-1;COUNT=6`],
  'last working day, fortnightly': ['2026-01-09', `FREQ=WEEKLY;INTERVAL=2;${weekdays};BYSETPOS=-1;COUNT=6`],
};
let isAsSeen = true;
for (const [name, [start, rule]] of Object.entries(rules)) {
  const iterator = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromString(`${start}T09:00:00`));
  const ical = [];
  for (let day = iterator.next(); day; day = iterator.next()) ical.push(day.toString().slice(0, 10));
  const text = `DTSTART:${start.replaceAll('-', '')}T090000Z\nRRULE:${rule}`;
  const other = rrule.rrulestr(text).all().map((day) => day.toISOString().slice(0, 10));
  console.log(`${name}\n  ical.js: ${ical.join(' ')}\n  rrule:   ${other.join(' ')}`);
  isAsSeen &&= ical.join() !== other.join();
}
process.exit(isAsSeen ? 0 : 1);
JS
node run.mjs
