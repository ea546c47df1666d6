import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as apiClients from '../../../application/access/api-clients.ts'
import { apiClient } from '../../../domain/access/api-client.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { SystemRandomness } from '../../../infrastructure/randomness.ts'
import { newId } from '../../support/payroll.ts'
import { operatorContext } from '../../support/registrations.ts'
import { openWorkbench, type Workbench } from '../../support/workbench.ts'

let bench: Workbench

beforeAll(async () => {
  bench = await openWorkbench()
})
afterAll(() => bench?.close())

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

test('a rotation that is retried hands out no secret that does not work', async () => {
  const clientId = 'service_live_cli_rotated'
  const data = {
    client_id: clientId,
    tenant_id: newId(),
    name: 'Rotated',
    environment: 'live' as const,
    products: ['all' as const],
    carrier_ids: 'all' as const,
    employer_ids: 'all' as const,
    request_signing: 'off' as const,
    secret_hash: sha256('the first one'),
  }
  await bench.commands.execute(apiClient, clientId, { type: 'Issue', data }, operatorContext(randomUUID()))
  const app = {
    commands: bench.commands,
    readModels: bench.drainParts({ positions: async () => new Map(), kinds: [] }).readModels,
    randomness: new SystemRandomness(bench.clock),
  }
  const context = operatorContext(randomUUID())

  const rotated = await apiClients.rotate(app, clientId, context)
  if (isRejection(rotated)) throw new Error(rotated.message)
  const retried = await apiClients.rotate(app, clientId, context)
  expect(retried).toMatchObject({ rejected: true, kind: 'conflict', code: 'already_created' })
  expect(retried).toMatchObject({ message: expect.stringContaining(clientId) })

  const { state } = await bench.commands.load(apiClient, clientId)
  expect(state?.secret_hash).toBe(sha256(rotated.clientSecret))
  const next = await apiClients.rotate(app, clientId, operatorContext(randomUUID()))
  expect(isRejection(next)).toBe(false)
})
