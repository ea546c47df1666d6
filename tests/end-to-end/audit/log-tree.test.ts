// @module-tag each-log
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cli, expectRefused } from '../../support/cli.ts'
import { askOperator, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

describe('the log of a service', () => {
  let folder: string
  let service: RunningService
  let seeded: SeededTenant
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'compstream-checkpoints-'))
    service = await startService({ env: { AUDIT_CHECKPOINTS_DIR: folder } })
    seeded = await seedTenant(service)
  })
  afterAll(async () => {
    await service?.stop()
    await rm(folder, { recursive: true })
  })

  const ops = (method: string, path: string) => askOperator(service, method, path)
  const eventId = async (): Promise<string> =>
    (await ops('GET', `/streams/employer-${seeded.employerId}`)).body.data[0].event_id

  /** Checks a proof by the command line, without the service. */
  async function check(proof: unknown, ...options: string[]) {
    const file = join(folder, 'proof.json')
    await writeFile(file, JSON.stringify(proof))
    return cli(['--json', 'audit', 'check', file, ...options])
  }

  test('proves an event to who has the key that was kept outside it, and no other event', async () => {
    const proof = (await ops('GET', `/audit/proofs/${await eventId()}`)).body.data
    const kept = ['--key-file', join(folder, 'verifier-key')]
    const checked = await check(proof, ...kept)
    expect([checked.stderr, checked.json()]).toEqual([
      '',
      expect.objectContaining({
        proven: true,
        stream: `employer-${seeded.employerId}`,
        revision: 0,
        type: 'EmployerRegistered',
        leaf_index: proof.leaf_index,
      }),
    ])
    const altered = Buffer.from(proof.leaf, 'base64').toString().replace('EmployerRegistered', 'Employer')
    const leaf = Buffer.from(altered).toString('base64')
    expectRefused(await check({ ...proof, leaf }, ...kept), /proves nothing/)
    const another = 'compstream/x+29c8d1b2+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    expect((await check(proof, '--key', another)).code).toBe(2)
    expect((await check(proof)).stderr).toMatch(/--key or --key-file/)
    expectRefused(await check({ kind: 'inclusion' }, ...kept), /holds no proof/)
  })

  test('is signed when an operator asks, and each checkpoint is the beginning of the next', async () => {
    const first = (await ops('POST', '/audit/checkpoints')).body.data
    await ops('GET', `/streams/employer-${seeded.employerId}?reveal=true`)
    const { status, body } = await ops('POST', '/audit/checkpoints')
    expect([status, body.data.size > first.size]).toEqual([201, true])
    expect(await readFile(join(folder, 'latest.checkpoint'), 'utf8')).toBe(body.data.note)
    expect((await ops('GET', '/audit/checkpoints?limit=2')).body.data).toEqual([body.data, first])

    const { data } = (await ops('GET', `/audit/consistency?from=${first.size}&to=${body.data.size}`)).body
    const checked = await check(data, '--key', first.key)
    expect(checked.json()).toMatchObject({ proven: true, from: first.size, to: body.data.size })
    expectRefused(await check({ ...data, from: data.to }, '--key', first.key), /proves nothing/)
  })

  test.each([
    ['/audit/proofs/00000000-0000-4000-8000-000000000000', 404],
    ['/audit/proofs/x', 404],
    ['/audit/consistency?from=1', 404],
    ['/audit/consistency?from=0', 400],
    ['/audit/consistency?to=x', 400],
    ['/audit/checkpoints?limit=0', 400],
  ])('has no proof for %s: %i', async (path, status) => {
    expect((await ops('GET', path)).status).toBe(status)
  })
})
