import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Application } from '../../../../application/commands/application.ts'
import { checkoutSettings as whatFollows } from '../../../../application/payments/checkout-settings-process-manager.ts'
import { verifyWebAddress } from '../../../../application/payments/web-addresses.ts'
import { checkoutSettings, DEFAULT_CHECKOUT } from '../../../../domain/payments/pages/checkout-settings.ts'
import { gate } from '../../../support/gate.ts'
import { workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
} from '../../../support/registrations.ts'
import { newId } from '../../../support/webhooks.ts'

let process: RegistrationProcess

beforeAll(async () => {
  process = await openRegistrationProcess()
})
afterAll(() => process?.bench.close())

test('an operator who vouches for a web address while somebody looks in vain is not overruled by that', async () => {
  const [asked, answered] = [gate(), gate()]
  const app: Application = {
    ...process.app,
    outsideWeb: {
      async textRecords() {
        asked.open()
        await answered.opened
        return []
      },
      get: async () => ({ statusCode: 404, body: Buffer.alloc(0) }),
    },
  }
  const [tenantId, web_address] = [newId(), 'pay.partner.example']
  const settings = { ...DEFAULT_CHECKOUT, web_address, link_format: '/pay/{token}' }
  const set = { type: 'Set', tenantId, settings } as const
  accepted(await app.commands.execute(checkoutSettings, tenantId, set, operatorContext()))

  const looked = whatFollows(app).work.look.run(workItem({ key: tenantId, payload: { web_address } }))
  await asked.opened
  const vouch = { byOperator: true, ownHosts: [] }
  accepted(await verifyWebAddress(app, tenantId, vouch, operatorContext()))
  answered.open()
  await looked
  const { state } = await app.commands.load(checkoutSettings, tenantId)
  expect(state.web_address_proof).toBe('operator')
})
