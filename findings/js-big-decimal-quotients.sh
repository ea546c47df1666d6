#!/usr/bin/env bash
# js-big-decimal 2.2.0: quotients above the half cent are rounded down.
# Expected: divide() rounds as its readme says of HALF_EVEN, its default, in the words of Java 8: to the nearer neighbour, and
# to the even one only where both are equally far. Pay by hours is such a quotient: the hourly rate of a week.
# Seen: the quotient is cut two digits after those asked for and the rest forgotten before it is rounded, so 26.82503...
# counts as half way and becomes 26.82. Of the weeks of 40.25 hours that pay 1.00 to 2,000.00 one in 160 is a cent short.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund js-big-decimal@2.2.0
cat >run.cjs <<'JS'
const BigDecimal = require('js-big-decimal');
const hours = 4025n;
const short = [];
for (let pay = 100n; pay <= 200_000n; pay++) {
  const rest = (pay * 100n) % hours;
  // cents per hour, without the ties that the mode is about
  const cents = (pay * 100n) / hours + (rest * 2n > hours ? 1n : 0n);
  const text = (Number(pay) / 100).toFixed(2);
  const got = BigDecimal.divide(text, '40.25', 2);
  if (rest * 2n === hours || got === (Number(cents) / 100).toFixed(2)) continue;
  short.push({ pay: text, exact: BigDecimal.divide(text, '40.25', 8), got });
}
console.log(`${short.length} of ${200_000 - 99}, among them`, short.filter(({ pay }) => pay > 1079).slice(0, 3));
const isBelow = short.every(({ exact, got }) => Number(exact) - Number(got) > 0.005);
process.exit(short.length > 1_000 && isBelow ? 0 : 1);
JS
node run.cjs
