import { appends } from './appends.ts'
import { deciders } from './deciders.ts'
import { gates } from './gates.ts'
import { idempotency } from './idempotency.ts'
import { lostAndRefused } from './lost-and-refused.ts'
import { money } from './money.ts'
import { nacha } from './nacha.ts'
import { parsing } from './parsing.ts'
import { plans } from './plans.ts'
import { projections } from './projections.ts'
import { scopes } from './scopes.ts'
import { sealing } from './sealing.ts'
import { webhooks } from './webhooks.ts'

/** Mistakes by the area of the product in which they are made. */
export const mutationsByArea = {
  deciders,
  money,
  gates,
  nacha,
  plans,
  idempotency,
  scopes,
  appends,
  projections,
  webhooks,
  parsing,
  sealing,
  lostAndRefused,
}
