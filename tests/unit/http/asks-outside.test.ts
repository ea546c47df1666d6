import { expect, test } from 'vitest'
import { APIS } from '../../../interfaces/descriptions.ts'

/** Answered 502 when the service's own work broke off: nobody outside is asked. */
const OWN_WORK = ['pushPayroll', 'reportPayroll', 'takeInPolicy']

test('what is answered 502 when a provider is away holds up nobody who asks for something else', () => {
  const counted = Object.values(APIS)
    .flat()
    .filter(({ errors, asksOutside }) => errors?.[502] !== undefined && !asksOutside)
  expect([...new Set(counted.map(({ operation }) => operation.replace(/V\d$/, '')))].toSorted()).toEqual(
    OWN_WORK,
  )
})
