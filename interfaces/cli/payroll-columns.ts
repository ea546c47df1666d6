/**
 * Which column of a payroll export is which field of a report. Names are compared in small letters, with an
 * underscore for whatever stands between words, and `number` for `#`.
 */

/** Names of a field, its own first; among them those of Gusto, ADP, Paychex, Paylocity and QuickBooks. */
const NAMES: Readonly<Record<string, string>> = {
  first_name: 'first_name employee_first_name firstname first given_name legal_first_name',
  last_name: 'last_name employee_last_name lastname last surname family_name legal_last_name',
  name:
    'name employee employee_name employee_full_name full_name payroll_name worker worker_name associate_name ' +
    'last_name_first_name name_last_first employee_name_last_first employee_name_last_suffix_first_mi',
  employee_id:
    'employee_id employee_number employee_no employee_code emp_id emp_number emp_no emp_code ee_id ee_code ' +
    'ee_number worker_id associate_id file_number file_no payroll_id clock_number',
  ssn:
    'ssn employee_ssn ssn_number social_security social_security_number social_security_no soc_sec_number ss_number ' +
    'tax_id_ssn',
  class_code:
    'class_code classcode class wc_code wc_class wc_class_code wcc workers_comp_code workers_comp_class ' +
    'workers_comp_class_code workers_compensation_code workers_compensation_class workers_compensation_class_code ' +
    'work_comp_code comp_code ncci_code ncci_class_code',
  state:
    'state st state_code work_state worked_state state_worked worked_in_state wc_state workers_comp_state ' +
    'work_location_state sui_state',
  gross_wages:
    'gross_wages gross_wage wages gross gross_pay gross_earnings gross_amount gross_payroll total_gross ' +
    'total_gross_pay total_gross_wages total_gross_earnings total_wages total_earnings wc_wages workers_comp_wages',
  overtime:
    'overtime overtime_wages overtime_pay overtime_earnings overtime_amount ot_wages ot_pay ot_earnings ot_amount',
  hours_worked: 'hours_worked hours total_hours total_hours_worked hrs',
  rate: 'rate hourly_rate pay_rate rate_of_pay',
  check_date: 'check_date pay_date payment_date paycheck_date payday pay_day date_paid',
  pay_period_start:
    'pay_period_start period_start pay_period_start_date period_start_date pay_period_begin period_begin ' +
    'pay_period_begin_date period_begin_date pay_period_beginning period_beginning pay_period_beginning_date',
  pay_period_end:
    'pay_period_end period_end pay_period_end_date period_end_date pay_period_ending period_ending ' +
    'pay_period_ending_date period_ending_date',
}

const FIELDS: ReadonlyMap<string, string> = new Map(
  Object.entries(NAMES).flatMap(([field, names]) => names.split(' ').map((name) => [name, field] as const)),
)

/** The field of a report that a column means, null when it is not understood. */
export function fieldOfColumn(name: string): string | null {
  const plain = name
    .toLowerCase()
    .replace(/['’.]/g, '')
    .replace(/#/g, ' number ')
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
  return FIELDS.get(plain) ?? null
}
