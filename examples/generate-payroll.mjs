// Writes examples/payroll-2026-q3.csv: one quarter of an invented builder's payroll, 200 employees
// paid twice a month. The same seed always writes the same bytes. 25 rows are faulty on purpose.
//
//   node examples/generate-payroll.mjs [file]

import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const SEED = 20260930
const EMPLOYEES = 200

const PERIODS = [
  { start: '2026-07-01', end: '2026-07-15', check: '2026-07-15' },
  { start: '2026-07-16', end: '2026-07-31', check: '2026-07-31' },
  { start: '2026-08-01', end: '2026-08-15', check: '2026-08-14' },
  { start: '2026-08-16', end: '2026-08-31', check: '2026-08-31' },
  { start: '2026-09-01', end: '2026-09-15', check: '2026-09-15' },
  { start: '2026-09-16', end: '2026-09-30', check: '2026-09-30' },
]

const COLUMNS = [
  'employee_id',
  'first_name',
  'last_name',
  'class_code',
  'state',
  'gross_wages',
  'hours_worked',
  'rate',
  'overtime',
  'check_date',
  'pay_period_start',
  'pay_period_end',
]

// class code, share of the workforce, pay: dollars a year for salaried work, dollars an hour otherwise
const JOBS = [
  { code: '8810', share: 0.14, salary: [48_000, 92_000] }, // clerical office employees
  { code: '8742', share: 0.08, salary: [60_000, 135_000] }, // outside sales
  { code: '5606', share: 0.06, salary: [88_000, 150_000] }, // construction executives, supervisors
  { code: '5403', share: 0.28, hourly: [23, 44] }, // carpentry, not otherwise classified
  { code: '5645', share: 0.3, hourly: [21, 41] }, // carpentry of dwellings
  { code: '7219', share: 0.14, hourly: [22, 36] }, // trucking
]

const STATES = [
  { state: 'CA', share: 0.42 },
  { state: 'NV', share: 0.2 },
  { state: 'TX', share: 0.24 },
  { state: 'PA', share: 0.14 },
]

const FIRST_NAMES = (
  'Ada Alma Amir Ana Andre Anika Arturo Beatriz Ben Bianca Caleb Camila Carl Chen Chidi Clara Dana Daniel Dara ' +
  'Darius Diego Elena Eli Emeka Erin Esther Farid Fiona Gabriel Grace Hana Hector Ines Isaac Ivan Jamal Joan Jonas ' +
  'Jorge Julia Kai Karim Kenji Lara Leo Linh Lucia Malik Mara Marco Mei Mina Miguel Nadia Nina Noor Omar Owen Paula ' +
  'Petra Priya Quinn Rafael Rosa Ruth Samir Sara Selma Tariq Teresa Theo Uma Victor Wanda Yusuf Zoe'
).split(' ')

const LAST_NAMES = (
  'Abara Aldana Asher Barros Beckett Bello Boyer Castano Chandra Cho Corrado Dalton Dempsey Diallo Dorsey Eastman ' +
  'Ekland Farrow Fenwick Fontaine Galvan Gathers Hadley Halloran Hasegawa Ibarra Iqbal Jelinek Kaminski Kessler ' +
  'Kowalczyk Laird Lindqvist Lozano Maddox Marchetti Mbeki Nakata Navarro Norwood Obuya Okafor Orsini Pacheco ' +
  'Pelletier Pham Quintero Raman Redding Rourke Sandoval Shapley Sorensen Szabo Tanaka Tolliver Trujillo Ulrich ' +
  'Vasquez Venter Wexler Whitlock Yamada Zapata Zielinski'
).split(' ')

/** Mulberry32: a small generator whose sequence depends on the seed alone; values in [0, 1). */
function generator(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

const random = generator(SEED)
const between = ([low, high]) => low + random() * (high - low)
const pick = (list) => list[Math.floor(random() * list.length)]

function byShare(list) {
  let left = random() * list.reduce((sum, { share }) => sum + share, 0)
  for (const entry of list) {
    left -= entry.share
    if (left < 0) return entry
  }
  return list.at(-1)
}

function employee(index) {
  const job = byShare(JOBS)
  return {
    employee_id: `E${1001 + index}`,
    first_name: pick(FIRST_NAMES),
    last_name: pick(LAST_NAMES),
    class_code: job.code,
    state: byShare(STATES).state,
    // 24 pay dates a year
    perPeriod: job.salary ? (Math.round(between(job.salary) / 500) * 500) / 24 : null,
    perHour: job.hourly ? Math.round(between(job.hourly) * 4) / 4 : null,
  }
}

/** Salaries and periods with overtime as gross wages; plain hourly periods as hours and rate. */
function wages({ perPeriod, perHour }) {
  if (perPeriod !== null) return { gross_wages: perPeriod.toFixed(2) }
  const hours = Math.round(between([64, 88]) * 4) / 4
  if (random() >= 0.3) return { hours_worked: String(hours), rate: perHour.toFixed(2) }
  const overtimeHours = Math.round(between([2, 18]) * 2) / 2
  const overtime = overtimeHours * perHour * 1.5
  return { gross_wages: (hours * perHour + overtime).toFixed(2), overtime: overtime.toFixed(2) }
}

const noWage = { gross_wages: '', hours_worked: '', rate: '', overtime: '' }

// what people really send: wrong codes, other countries' and spreadsheets' ways of writing, reversals, gaps
const FAULTS = [
  { class_code: '8801' },
  { state: 'NM' },
  { ...noWage, gross_wages: '-412.50' },
  noWage,
  { check_date: '07/15/2026' },
  { ...noWage, gross_wages: '$2,150.00' },
  { class_code: '5437' },
  { state: 'Nevada' },
  { ...noWage, gross_wages: '-1980.00' },
  { class_code: '9999' },
  noWage,
  { check_date: '2026-09-31' },
  { ...noWage, gross_wages: 'n/a' },
  { state: 'AZ' },
  { class_code: '5403-A' },
  { ...noWage, gross_wages: '-75.00' },
  noWage,
  { check_date: '31.07.2026' },
  { ...noWage, hours_worked: 'eighty', rate: '31.25' },
  { state: 'NM' },
  { class_code: '8801', state: 'OR' },
  { ...noWage, gross_wages: '-2240.10' },
  noWage,
  { check_date: '2026-13-15' },
  { class_code: '5606X' },
]

const employees = Array.from({ length: EMPLOYEES }, (_, index) => employee(index))
const rows = PERIODS.flatMap((period) =>
  employees.map((person) => ({
    ...person,
    ...wages(person),
    check_date: period.check,
    pay_period_start: period.start,
    pay_period_end: period.end,
  })),
)
for (const [index, columns] of FAULTS.entries()) {
  Object.assign(rows[Math.floor(((index + random()) * rows.length) / FAULTS.length)], columns)
}

const cell = (value = '') => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value)
const lines = [COLUMNS, ...rows.map((row) => COLUMNS.map((column) => cell(row[column])))]
const target = process.argv[2] ?? fileURLToPath(new URL('payroll-2026-q3.csv', import.meta.url))
writeFileSync(target, lines.map((columns) => `${columns.join(',')}\n`).join(''))
process.stdout.write(`${rows.length} rows, ${FAULTS.length} of them faulty: ${target}\n`)
