// What docs/operators/scaling.md assumes and the measurement `payroll-calendar` plays: change it here, and print the page's
// tables anew with `npm run bench -- --calendar`.

/** Partners, their employers, and how often those pay. Shares are parts of one. */
export const CALENDAR = {
  employersPerTenant: 100,
  peoplePerEmployer: 20,
  /** Of the people of a report, those never reported before. */
  newPeople: 0.02,
  /** Employers by pay period, as U.S. private employers were in 2023 (Bureau of Labor Statistics), rounded. */
  weekly: 0.27,
  everyTwoWeeks: 0.43,
  twiceAMonth: 0.2,
  monthly: 0.1,
  /** Of weekly and two-weekly pay days, those on a Friday. */
  onFriday: 0.7,
  /** Of the employers that pay every two weeks, those in the busier one. */
  inBusierWeek: 0.6,
  workdaysPerMonth: 21,
  /** Of a day's reports, those that come within its peak, and how long that is. */
  inPeak: 0.8,
  peakHours: 4,
  /** Of an hour's reports, those of its first five minutes, when programs send by the clock. */
  inFirstFiveMinutes: 0.25,
} as const

/** What is asked along with one report, each on an average. */
export const PER_REPORT = {
  report: 1,
  statusRead: 3,
  toolCall: 0.3,
  debit: 0.8,
  ledgerRead: 0.5,
  link: 0.1,
  linkPaid: 0.1,
} as const

export type RequestKind = keyof typeof PER_REPORT

/** What a request of a kind is, for people. */
export const KINDS: Readonly<Record<RequestKind, string>> = {
  report: `report of ${CALENDAR.peoplePerEmployer} people, until all three phases are complete`,
  statusRead: 'status read of a file',
  toolCall: 'tool call that validates 3 rows',
  debit: 'debit of an employer’s account',
  ledgerRead: 'page of the ledger of an employer',
  link: 'payment link',
  linkPaid: 'payment link paid, with its webhook',
}

/** Tenants of the three installations that the page does the arithmetic for. */
export const SIZES = [100, 1_000, 10_000] as const
/** Tenants that the simulation has: a tenth of the smallest size. */
export const SIMULATED_TENANTS = SIZES[0] / 10

/** Reports of the days that the page knows, and of the busiest hour and minutes of the last of them. */
export interface Reports {
  readonly averageDay: number
  readonly friday: number
  /** A Friday of the busier week that ends a month, or lies on its middle. */
  readonly monthEndFriday: number
  readonly peakHour: number
  /** Per second, over the five minutes that begin the busiest hour. */
  readonly peakPerSecond: number
}

/** The arithmetic of the page. */
export function reportsOf(tenants: number): Reports {
  const { weekly, everyTwoWeeks, twiceAMonth, monthly, onFriday, inBusierWeek } = CALENDAR
  const employers = tenants * CALENDAR.employersPerTenant
  const perMonth = (weekly * 52) / 12 + (everyTwoWeeks * 26) / 12 + twiceAMonth * 2 + monthly
  const friday = employers * onFriday * (weekly + everyTwoWeeks * inBusierWeek)
  const monthEndFriday = friday + employers * (twiceAMonth + monthly)
  const peakHour = (monthEndFriday * CALENDAR.inPeak) / CALENDAR.peakHours
  return {
    averageDay: (employers * perMonth) / CALENDAR.workdaysPerMonth,
    friday,
    monthEndFriday,
    peakHour,
    peakPerSecond: (peakHour * CALENDAR.inFirstFiveMinutes) / 300,
  }
}

/** Requests of a kind per second in the busiest minutes. */
export function peakRate(tenants: number, kind: RequestKind): number {
  return reportsOf(tenants).peakPerSecond * PER_REPORT[kind]
}

const whole = (value: number) => Math.round(value).toLocaleString('en-US')
const percent = (share: number) => `${Math.round(share * 100)} %`
const rate = (value: number) => (value < 10 ? value.toFixed(2) : whole(value))

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** The page's tables, in Markdown. */
export function calendarTables(): string {
  const of = CALENDAR
  const sizes = SIZES.map((tenants) => ({ tenants, reports: reportsOf(tenants) }))
  const row = (name: string, value: (reports: Reports, tenants: number) => string) => [
    name,
    ...sizes.map(({ reports, tenants }) => value(reports, tenants)),
  ]
  const assumed = table(
    ['Assumed', ''],
    [
      ['employers of a tenant', whole(of.employersPerTenant)],
      [
        'people of an employer',
        `${whole(of.peoplePerEmployer)}, of whom ${percent(of.newPeople)} are new in each report`,
      ],
      [
        'employers that pay weekly, every two weeks, twice a month, monthly',
        [of.weekly, of.everyTwoWeeks, of.twiceAMonth, of.monthly].map(percent).join(', '),
      ],
      ['weekly and two-weekly pay days that are Fridays', percent(of.onFriday)],
      ['employers paying every two weeks that do so in the busier week', percent(of.inBusierWeek)],
      ["a day's reports within its peak", `${percent(of.inPeak)} in ${of.peakHours} hours`],
      ["an hour's reports within its first five minutes", percent(of.inFirstFiveMinutes)],
      ...Object.entries(KINDS)
        .filter(([kind]) => kind !== 'report')
        .map(([kind, name]) => [`${name}, for each report`, String(PER_REPORT[kind as RequestKind])]),
    ],
  )
  const arithmetic = table(
    ['', ...SIZES.map((tenants) => `${whole(tenants)} tenants`)],
    [
      row('employers', (_, tenants) => whole(tenants * of.employersPerTenant)),
      row('people', (_, tenants) => whole(tenants * of.employersPerTenant * of.peoplePerEmployer)),
      row('reports on an average workday', ({ averageDay }) => whole(averageDay)),
      row('on a Friday of the busier week', ({ friday }) => whole(friday)),
      row('on such a Friday at the end of a month', ({ monthEndFriday }) => whole(monthEndFriday)),
      row('in its busiest hour', ({ peakHour }) => whole(peakHour)),
      row('per second in the first five minutes of that hour', ({ peakPerSecond }) => rate(peakPerSecond)),
      row('requests of all kinds per second then', ({ peakPerSecond }) =>
        rate(peakPerSecond * Object.values(PER_REPORT).reduce((sum, each) => sum + each, 0)),
      ),
      row('rows of payroll per second then', ({ peakPerSecond }) =>
        rate(peakPerSecond * of.peoplePerEmployer),
      ),
    ],
  )
  return `${assumed}\n\n${arithmetic}\n`
}
