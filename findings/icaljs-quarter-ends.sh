#!/usr/bin/env bash
# ical.js 2.2.1: a yearly rule for the last days of several months gives the first day of May.
# Expected: BYMONTH=1,4,7,10 with BYMONTHDAY=-1 are the due dates of the quarterly return (Form 941): April 30, July 31,
# October 31, January 31. RFC 5545, 3.3.10: -1 counts from the end of the month that it is in; a day that is not in the
# rule is no occurrence. rrule 2.8.1 has it so.
# Seen: April's becomes May 1, a day late, in every year and although the rule starts on April 30; the longer months are right.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund ical.js@2.2.1 rrule@2.8.1
cat >run.mjs <<'JS'
import ICAL from 'ical.js';
import rrule from 'rrule';
const rule = 'FREQ=YEARLY;BYMONTH=1,4,7,10;BYMONTHDAY=-1;COUNT=6';
const iterator = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromString('2026-04-30T17:00:00'));
const ical = [];
for (let due = iterator.next(); due; due = iterator.next()) ical.push(due.toString().slice(0, 10));
const other = rrule.rrulestr(`DTSTART:20260430T170000Z\nRRULE:${rule}`).all().map((due) => due.toISOString().slice(0, 10));
console.log('ical.js:', ical.join(' '));
console.log('rrule:  ', other.join(' '));
const wrong = ical.filter((due) => !other.includes(due));
process.exit(wrong.join() === '2026-05-01,2027-05-01' && other.includes('2026-04-30') && other.length === ical.length ? 0 : 1);
JS
node run.mjs
