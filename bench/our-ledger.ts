import pg from 'pg'

// A ledger of generated rows, written straight into the read models of a service that runs.

/** Of all rows, how many are debits of this service; the others are records of the legacy one. */
const DEBITS = 0.5
export const EMPLOYERS = 5_000
/** Shares of the carriers: a large one that has more than 100,000 of a million rows, one that has nearly as many, small ones. */
const CARRIERS = [0.6, 0.095, 0.005]

/** Statuses with their shares; the last one has what is left. */
const DEBIT_STATUSES = {
  pending: 0.01,
  Scheduled: 0.03,
  submitted: 0.05,
  returned: 0.03,
  failed: 0.04,
  cancelled: 0.02,
  quarantined: 0.005,
  legacy_collected: 0.005,
  processed: 0.81,
}
const LEGACY_STATUSES = {
  pending: 0.005,
  at_sb: 0.01,
  file_transmitted: 0.01,
  legacy_collected: 0.05,
  returned: 0.04,
  failed: 0.02,
  canceled: 0.01,
  sb_remit: 0.855,
}

/** Ids of what rows name, by number. */
export const carrierOf = (number: number): string => idOf('ca', number)
export const employerOf = (number: number): string => idOf('e', number)
/** Each employer has two. */
export const policyOf = (number: number): string => idOf('b', number)

function idOf(kind: string, number: number): string {
  return kind + number.toString(16).padStart(24 - kind.length, '0')
}

/** Writes rows of one tenant, half of them of the years before. */
export async function fillLedger(url: string, rows: number, tenantId: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const debits = Math.round(rows * DEBITS)
    const legacy = rows - debits
    // the same rows in every run
    await client.query(`SELECT setseed(0.5)`)
    await client.query(
      `INSERT INTO read_model.bank_debits
         (leg_id, tenant_id, environment, employer_id, carrier_id, policy_id, source, bank_account_id, account_last4,
          payment_purpose, description, metadata, status, amount_cents, effective_date, awaits_credit, created_at,
          updated_at, seq)
       SELECT ${idSql("'d'", 'n')}, $1, 'live', ${OWNER_SQL}, 'api', ${idSql("'ac'", 'employer')}, '6789',
         'paygo', 'Premium', '{"order":"A-1"}', ${shareSql(DEBIT_STATUSES)}, amount,
         to_char(created + interval '2 days', 'YYYY-MM-DD'), false, ${timeSql('created')}, ${timeSql('created')}, n
       FROM (${generatedSql(debits, "timestamp '2026-05-01'", 180)}) AS generated`,
      [tenantId],
    )
    await client.query(
      `INSERT INTO read_model.legacy_collections
         (transaction_id, tenant_id, environment, employer_id, carrier_id, policy_id, status, amount_cents, period_start,
          period_end, effective_date, created_at, updated_at, seq, import_revision)
       SELECT ${idSql("'1'", 'n')}, $1, 'live', ${OWNER_SQL}, ${shareSql(LEGACY_STATUSES)}, amount,
         ${daySql('created')}, ${daySql('created')}, ${daySql('created')}, ${timeSql("date_trunc('day', created)")},
         ${timeSql("date_trunc('day', created)")}, n, 1
       FROM (${generatedSql(legacy, "timestamp '2021-01-01'", 1_900)}) AS generated`,
      [tenantId],
    )
    await client.query('VACUUM (ANALYZE)')
  } finally {
    await client.end()
  }
}

/** Rows in the order of time, each with an employer, a share for its carrier and status, and an amount. */
function generatedSql(rows: number, from: string, days: number): string {
  return `SELECT n, floor(random() * ${EMPLOYERS})::int AS employer, random() AS share, random() AS of_status,
      floor(random() * 500000)::bigint + 1 AS amount,
      ${from} + n * interval '${days} days' / ${rows} AS created
    FROM generate_series(1, ${rows}) AS n`
}

/** An employer has a carrier, and two policies. */
const OWNER_SQL = `${idSql("'e'", 'employer')}, ${idSql("'ca'", carrierSql())},
  ${idSql("'b'", '(employer * 2 + (share * 1000)::int % 2)')}`

function carrierSql(): string {
  const ofEmployer = `(employer::float / ${EMPLOYERS})`
  let upTo = 0
  const cases = CARRIERS.map((share, number) => {
    upTo += share
    return `WHEN ${ofEmployer} < ${upTo} THEN ${number}`
  })
  return `(CASE ${cases.join(' ')} ELSE ${CARRIERS.length} + employer % 20 END)`
}

function shareSql(shares: Readonly<Record<string, number>>): string {
  let upTo = 0
  const cases = Object.entries(shares).map(([status, share]) => {
    upTo += share
    return `WHEN of_status < ${upTo} THEN '${status}'`
  })
  return `CASE ${cases.join(' ')} ELSE '${Object.keys(shares).at(-1)}' END`
}

function idSql(kind: string, number: string): string {
  return `(${kind} || lpad(to_hex(${number}), ${24 - (kind.length - 2)}, '0'))`
}

function timeSql(moment: string): string {
  return `to_char(${moment}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
}

function daySql(moment: string): string {
  return `to_char(${moment}, 'YYYY-MM-DD')`
}
