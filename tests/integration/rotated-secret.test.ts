import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as apiClients from '../../application/access/api-clients.ts'
import type { CommandContext } from '../../application/command-handling/command-context.ts'
import { apiClient } from '../../domain/access/api-client.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { SystemRandomness } from '../../infrastructure/randomness.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { newId } from '../support/payroll.ts'
import { openWorkbench, type Workbench } from '../support/workbench.ts'

let testDatabase: TestDatabase
let bench: Workbench

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  bench = await openWorkbench(testDatabase.url)
})
afterAll(async () => {
  await bench?.close()
  await testDatabase?.drop()
})

const contextOf = (commandId: string): CommandContext => ({
  actor: { type: 'operator', id: 'test' },
  tenantId: null,
  environment: null,
  correlationId: 'rotation',
  commandId,
})

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
  await bench.commands.execute(apiClient, clientId, { type: 'Issue', data }, contextOf(randomUUID()))
  const app = {
    commands: bench.commands,
    readModels: bench.drainParts({ positions: async () => new Map(), kinds: [] }).readModels,
    randomness: new SystemRandomness(bench.clock),
  }
  const context = contextOf(randomUUID())

  const rotated = await apiClients.rotate(app, clientId, context)
  if (isRejection(rotated)) throw new Error(rotated.message)
  const retried = await apiClients.rotate(app, clientId, context)
  expect(retried).toMatchObject({ rejected: true, kind: 'conflict', code: 'already_created' })
  expect(retried).toMatchObject({ message: expect.stringContaining(clientId) })

  const { state } = await bench.commands.load(apiClient, clientId)
  expect(state?.secret_hash).toBe(sha256(rotated.clientSecret))
  const next = await apiClients.rotate(app, clientId, contextOf(randomUUID()))
  expect(isRejection(next)).toBe(false)
})
