import { randomBytes, randomUUID } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eraseSubject } from '../../../application/operations/erasure.ts'
import { erasure } from '../../../application/operations/erasure-process-manager.ts'
import { ERASED, type PersonalData } from '../../../application/ports/personal-data.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Sealed } from '../../../domain/kernel/sealed.ts'
import { MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import { EncryptedPersonalData } from '../../../infrastructure/secrets/personal-data.ts'
import { PostgresSecretVault } from '../../../infrastructure/secrets/vault.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { EVENT_METADATA } from '../../support/log.ts'
import { openWorkbench, type Workbench } from '../../support/workbench.ts'

const subject = `person/${'a'.repeat(24)}`
const stream = `dataSubject-${subject.replace('/', '_')}`
const context = 'payrollFile-1|PayrollRowsRecorded|person'

let database: TestDatabase
let bench: Workbench
let personalData: EncryptedPersonalData

beforeEach(async () => {
  database = await createTestDatabase()
  bench = await openWorkbench(database.url)
  const masterKeys = new MasterKeys([randomBytes(32)])
  const { pool } = bench.database
  const vault = new PostgresSecretVault(pool, masterKeys, bench.clock)
  personalData = await EncryptedPersonalData.open({ pool, vault, masterKeys, clock: bench.clock })
})
afterEach(async () => {
  await bench.close()
  await database.drop()
})

async function seal(plaintext: string): Promise<Sealed> {
  return (await personalData.seal([{ subject, context, plaintext }]))[0]!
}

async function open(value: Sealed): Promise<string> {
  return (await personalData.open([{ value, context }]))[0]!
}

/** @param keys where keys are destroyed. */
async function erase(keys: PersonalData = personalData): Promise<bigint | null> {
  const parts = { commands: bench.commands, personalData: keys } as Parameters<typeof eraseSubject>[0]
  const erased = await eraseSubject(parts, subject, undefined, {
    actor: { type: 'operator', id: 'operator' },
    tenantId: null,
    environment: null,
    correlationId: 'test',
    commandId: randomUUID(),
  })
  if (isRejection(erased)) throw new Error(erased.message)
  return erased.position
}

/** Erases, and dies as soon as that is recorded. */
async function eraseHalfway(): Promise<void> {
  const dying: PersonalData = Object.create(personalData, {
    keyGeneration: { value: (of: string) => personalData.keyGeneration(of) },
    destroyKey: { value: () => Promise.reject(new Error('killed')) },
  })
  await expect(erase(dying)).rejects.toThrow('killed')
}

async function recorded(): Promise<unknown[]> {
  return (await bench.log.readStream(stream, { from: 0, maxCount: 100 })).map(({ data }) => JSON.parse(data))
}

async function runToRest(): Promise<void> {
  const runner = await bench.run([erasure({ personalData })])
  expect(await bench.drain(runner)).toBe(true)
  await runner.stop()
}

test('what broke off after it was recorded is finished without anybody asking', async () => {
  const value = await seal('Ada')
  await eraseHalfway()
  expect(await open(value)).toBe('Ada')
  await runToRest()
  expect(await open(value)).toBe(ERASED)
})

test('a late run leaves the newer key of a person who was reported again alone', async () => {
  const first = await seal('Ada')
  await erase()
  const second = await seal('Ada Baker')
  await runToRest()
  expect([await open(first), await open(second)]).toEqual([ERASED, 'Ada Baker'])
})

test('every erasure of a person who was reported again is recorded with its key, and finished', async () => {
  await seal('Ada')
  await erase()
  expect(await erase()).toBeNull()
  const second = await seal('Ada Baker')
  await eraseHalfway()
  await runToRest()
  expect(await open(second)).toBe(ERASED)
  expect(await recorded()).toEqual([
    { subject, generation: 1 },
    { subject, generation: 2 },
  ])
})

test('an erasure that names no key was of the first', async () => {
  const first = await seal('Ada')
  const [data, metadata] = [{ subject }, EVENT_METADATA].map((value) => JSON.stringify(value)) as [
    string,
    string,
  ]
  await bench.log.append(stream, -1, [{ type: 'PersonalDataErased', data, metadata }])
  await runToRest()
  expect(await open(first)).toBe(ERASED)
  const second = await seal('Ada Baker')
  await erase()
  expect(await open(second)).toBe(ERASED)
  expect(await recorded()).toEqual([{ subject }, { subject, generation: 2 }])
})
