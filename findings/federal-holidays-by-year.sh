#!/usr/bin/env bash
# @18f/us-federal-holidays 4.0.0: Friday 2027-12-31 is a holiday of the year 2028 only.
# Expected: the list of a year has each of its days that is a holiday; New Year's Day 2028 is a Saturday and is observed
# on 2027-12-31, so that day is in the list of 2027.
# Seen: the list of 2027 lacks it and that of 2028 begins with it, while the question about the day is answered with yes.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund @18f/us-federal-holidays@4.0.0
cat >run.cjs <<'JS'
const { allForYear, isAHoliday } = require('@18f/us-federal-holidays');
const has = (year) => allForYear(year).some(({ dateString }) => dateString === '2027-12-31');
const asked = isAHoliday(new Date('2027-12-31T00:00:00Z'), { utc: true });
console.log('in 2027:', has(2027), 'in 2028:', has(2028), 'asked:', asked);
process.exit(!has(2027) && has(2028) && asked ? 0 : 1);
JS
node run.cjs
