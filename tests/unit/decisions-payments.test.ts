import { ProcessorCustomerCreated, processorCustomer } from '../../domain/payments/processor-customer.ts'
import { decisions } from '../support/decider-spec.ts'

// each row reads given, when, then
const ID = 'a'.repeat(24)
const OWNED = { tenant_id: ID, environment: 'live' } as const

const customer = (customer_id: string) =>
  ProcessorCustomerCreated.of({ employer_id: ID, ...OWNED, customer_id })
const recordCustomer = (customer_id: string) =>
  ({ type: 'Record', data: customer(customer_id).data }) as const
decisions(processorCustomer, [
  ['is recorded', [], recordCustomer('cus_1'), [customer('cus_1')]],
  ['stays the first one', [customer('cus_1')], recordCustomer('cus_2'), []],
])
