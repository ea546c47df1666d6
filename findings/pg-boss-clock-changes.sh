#!/usr/bin/env bash
# pg-boss 10.4.2: a nightly schedule with a time zone runs twice when clocks go back, and not at all when they go forward.
# Expected: once a night, as cron daemons do it (cron(8): after a forward change of less than three hours jobs that were
# passed over run at once, after a backward one they are not run again). The schedule's documentation says nothing of it,
# and its parser's own list has a run at 03:00 for the night without 02:30.
# Seen: the job for 01:30 in New York is there at 05:30 and at 06:30 UTC of 2026-11-01, so debits are collected twice; the
# job for 02:30 is never made on 2027-03-14. (The script moves the clock that pg-boss and the database in its process read.)
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund pg-boss@10.4.2 @electric-sql/pglite@0.3.11 cron-parser@4.9.0
cat >run.mjs <<'JS'
const Real = Date;
let ahead = 0;
globalThis.Date = class extends Real {
  constructor(...of) {
    super(...(of.length ? of : [Real.now() + ahead]));
  }
  static now() {
    return Real.now() + ahead;
  }
};
const [{ PGlite }, { default: PgBoss }, { default: cron }] = await Promise.all(
  ['@electric-sql/pglite', 'pg-boss', 'cron-parser'].map((name) => import(name)),
);
const database = new PGlite();
const executeSql = async (text, values) => (values?.length ? database.query(text, values) : (await database.exec(text)).at(-1));
const tz = 'America/New_York';
const jobsAt = async (expression, time) => {
  ahead = Real.parse(time) - Real.now();
  const boss = new PgBoss({ db: { executeSql }, cronMonitorIntervalSeconds: 1, cronWorkerIntervalSeconds: 1, supervise: false });
  boss.on('error', console.error);
  await boss.start();
  await boss.createQueue('debits');
  await boss.schedule('debits', expression, {}, { tz });
  let jobs = 0;
  // eight seconds of a minute are eight looks at the schedule
  for (let second = 0; second < 8; second++) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    jobs += (await boss.fetch('debits', { batchSize: 10 })).length;
  }
  await boss.stop({ graceful: false });
  console.log(`${expression} at ${time}: ${jobs}`);
  return jobs;
};
const back = (await jobsAt('30 1 * * *', '2026-11-01T05:30:00Z')) + (await jobsAt('30 1 * * *', '2026-11-01T06:30:00Z'));
let forward = 0;
for (const time of ['06:30', '07:00', '07:30']) forward += await jobsAt('30 2 * * *', `2027-03-14T${time}:00Z`);
const listed = cron.parseExpression('30 2 * * *', { tz, currentDate: '2027-03-14T00:00:00-05:00' }).next().toISOString();
console.log({ back, forward, listed });
process.exit(back === 2 && forward === 0 && listed.startsWith('2027-03-14') ? 0 : 1);
JS
node run.mjs
