import type { Participants } from './servers.ts'

/** People whom the reports with known ones are about: more than any cache of one process is made for. */
export const POPULATION = 9_999

/** An employee of a report, the same for the same number; wages change with the report, as from period to period. */
export function employee(person: number, report: number, prefix = 'E'): Readonly<Record<string, unknown>> {
  return {
    employee_id: `${prefix}${person}`,
    first_name: `First${person % 97}`,
    last_name: `Last${person % 1009}`,
    class_code: '5403',
    state: 'CA',
    gross_wages: 1500 + ((person + report * 7) % 4000) / 4,
  }
}

/** The body of a report by the participants' employer. */
export function reportBody(
  who: Pick<Participants, 'fein' | 'policyNumber'>,
  employees: readonly object[],
  period = { start_date: '2026-08-01', end_date: '2026-08-15' },
): string {
  return JSON.stringify({
    employer_fein: who.fein,
    policy_number: who.policyNumber,
    pay_period: period,
    employees,
  })
}
