import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import {
  amountsOf,
  sendMicroDeposits,
  startVerification,
  verifyAmounts,
} from '../../../../application/banking/accounts/account-verification.ts'
import {
  attestAchAccount,
  correctAchAccount,
  createAchAccount,
} from '../../../../application/banking/accounts/ach-accounts.ts'
import { applyItem } from '../../../../application/banking/files/apply-item.ts'
import type { FileApp } from '../../../../application/banking/files/file-app.ts'
import { fileIdOf } from '../../../../application/banking/files/file-references.ts'
import { orderMicroDeposits } from '../../../../application/banking/files/micro-deposits.ts'
import { reportAnswer } from '../../../../application/banking/files/report-to-debits.ts'
import { writeFiles } from '../../../../application/banking/files/write-files.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { employerSubject } from '../../../../application/commands/sealing.ts'
import type { BankRail } from '../../../../application/ports/bank-rail.ts'
import { ProviderRefused } from '../../../../application/ports/provider.ts'
import { achAccount, VERIFICATION_MS } from '../../../../domain/banking/accounts/ach-account.ts'
import { nextClose } from '../../../../domain/banking/debits/banking-days.ts'
import { bankFile } from '../../../../domain/banking/files/bank-file.ts'
import { LIMITS } from '../../../../domain/banking/files/nacha/draft.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { EncryptedBankArchive } from '../../../../infrastructure/providers/bank/nacha/archive.ts'
import { NachaFolders } from '../../../../infrastructure/providers/bank/nacha/folders.ts'
import { BALANCED } from '../../../support/nacha-files.ts'
import {
  accepted,
  Crashed,
  moveClock,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  registerInsured,
} from '../../../support/registrations.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'

/** Micro-deposits in files for a bank: where they go, and what becomes of the verification where they do not. */
const NUMBERS = { routingNumber: '021000021', accountNumber: '000123456789' }
let process: RegistrationProcess
let app: Application & FileApp
const outbox = temporaryDirectory()
let ownerId: string
let accountId: string
let depositsId: string
/** Makes an account of the owner, and starts its verification. */
let create: (accountNumber: string) => Promise<void>
/** Of the batch of a test; each has a day of its own. */
let closesAt: number

beforeAll(async () => {
  process = await openRegistrationProcess()
  const files = {
    folders: new NachaFolders({ outboxDir: outbox, inboxDir: outbox }),
    archive: new EncryptedBankArchive(process.bench.database.pool, process.app.vault),
    originator: BALANCED,
    limits: LIMITS,
  }
  const fileApp = { ...process.app, bankFiles: files }
  const rail: BankRail = {
    kind: 'nacha',
    submit: (batch) => writeFiles(fileApp, batch),
    sendMicroDeposits: (deposits) => orderMicroDeposits(fileApp, deposits),
  }
  app = { ...process.app, bankFiles: files, bankRails: { live: rail, sandbox: rail } }
})
afterAll(() => process?.bench.close())
beforeEach(async () => {
  for (const name of await readdir(outbox)) await rm(join(outbox, name))
  const { tenantId, employerId } = await registerInsured(app)
  ownerId = employerId
  const client = {
    tenant_id: tenantId,
    environment: 'live',
    carrier_ids: 'all',
    employer_ids: 'all',
    client_id: 'client',
  } as const
  create = async (accountNumber) => {
    const { routingNumber: routing_number } = NUMBERS
    const numbers = { routing_number, account_number: accountNumber, account_type: 'checking' } as const
    const input = { owner_type: 'employer', owner_id: ownerId, ...numbers, bank_name: 'B' } as const
    const context = { ...operatorContext(), tenantId, environment: 'live' as const }
    const created = createAchAccount(
      app,
      client,
      { ...input, nickname: null, is_primary: false, linked: null },
      context,
    )
    accountId = accepted(await created).ach_account_id
    await start()
  }
  await create(NUMBERS.accountNumber)
})

const verificationOf = async () => (await app.commands.load(achAccount, accountId)).state!.verification!.state
const tryToStart = () => startVerification(app, { ach_account_id: accountId }, operatorContext())
async function start(): Promise<void> {
  depositsId = accepted(await tryToStart()).verification!.verification_id
}
const send = () => sendMicroDeposits(app, accountId, depositsId, operatorContext())
/** Moves to a minute after the close that deposits which were just sent go with. */
function close(): void {
  closesAt = nextClose(app.clock.now())
  moveTo(closesAt + 60_000)
}
const moveTo = (time: number) => moveClock(app, time)
async function submit(on: FileApp = app): Promise<void> {
  const none = (async function* () {})()
  await writeFiles(on, {
    closesAt,
    signal: new AbortController().signal,
    context: operatorContext(),
    entries: none,
    refuse: async () => undefined,
  })
}
const ordersTypes = async () =>
  (await app.log.readStream(`microDeposits-${depositsId}`)).map(({ type }) => type)
const fileOf = async () => (await app.commands.load(bankFile, fileIdOf(closesAt, 0))).state

const account = { holderName: 'Insured', ...NUMBERS, accountType: 'checking', bankName: 'B' } as const

test('micro-deposits are credits, which go once, to the numbers as they are then', async () => {
  await send()
  expect(await verificationOf()).toBe('sent')
  const kept = `SELECT count(*)::int AS n FROM runtime.secrets WHERE ref LIKE 'micro-deposits/%'`
  expect((await process.bench.database.pool.query(kept)).rows).toEqual([{ n: 0 }])
  const correction = { changeCode: 'C01', accountNumber: '5550001' }
  accepted(await correctAchAccount(app, accountId, correction, operatorContext()))
  close()
  // it was not known what had become of it
  await orderMicroDeposits(app, { depositsId, achAccountId: accountId, account })
  for (const _again of [1, 2]) await submit()
  const { batches, content } = (await fileOf())!
  const [one, other] = amountsOf(app, { verification_id: depositsId })
  const cents = { service_class: 200, debit_cents: one + other, credit_cents: one + other }
  expect(batches).toMatchObject([{ description: 'ACCTVERIFY', ...cents }])
  const text = await readFile(join(outbox, content!.name), 'latin1')
  expect(text.split(`021000021${'5550001'.padEnd(17)}`)).toHaveLength(3)
})

test('both of an order stand in one file, whoever dies before the next file', async () => {
  await send()
  const orders = [depositsId]
  await create('5550002')
  await send()
  orders.push(depositsId)
  close()
  // three entries and what offsets them
  const small = { ...app.bankFiles, limits: { ...LIMITS, fileEntries: 10 } }
  const folders = new NachaFolders({ outboxDir: outbox, inboxDir: outbox })
  const stage = folders.stage.bind(folders)
  let files = 0
  folders.stage = async (...file) => {
    files += 1
    if (files === 2) throw new Crashed()
    await stage(...file)
  }
  const submitted = submit({ ...app, bankFiles: { ...small, folders } })
  await expect(submitted).rejects.toThrow(Crashed)
  await submit({ ...app, bankFiles: small })
  const texts = (await readdir(outbox)).map((name) => readFile(join(outbox, name), 'latin1'))
  const entries = (await Promise.all(texts)).map((text) =>
    text
      .split('\n')
      .filter((line) => line.startsWith('622'))
      .map((line) => `${line.slice(39, 54)} ${Number(line.slice(29, 39))}`),
  )
  const expected = orders.map((id) =>
    amountsOf(app, { verification_id: id }).map((cents) => `${id.slice(0, 15)} ${cents}`),
  )
  expect(entries.toSorted()).toEqual(expected.toSorted())
})

test.each([{ routingNumber: '123456789' }, { holderName: '株式会社' }])(
  'they are refused where no file can hold them: %j',
  async (bad) => {
    const order = { depositsId, achAccountId: accountId, account: { ...account, ...bad } }
    await expect(orderMicroDeposits(app, order)).rejects.toThrow(ProviderRefused)
  },
)

test('those of an account that was erased are left out, and end the verification', async () => {
  await send()
  await app.personalData.destroyKey(employerSubject(app.personalData, ownerId), 1)
  close()
  for (const _again of [1, 2]) await submit()
  expect([await fileOf(), await readdir(outbox)]).toEqual([null, []])
  expect(await ordersTypes()).toEqual(['MicroDepositsOrdered', 'MicroDepositsLeftOut'])
  expect(await verificationOf()).toBe('ended')
})

test('those that nobody waits for do not go', async () => {
  await send()
  accepted(await attestAchAccount(app, accountId, null, operatorContext()))
  close()
  await submit()
  expect([await fileOf(), await ordersTypes()]).toEqual([null, ['MicroDepositsOrdered']])
})

test('those of a verification whose two weeks are over are not ordered', async () => {
  moveTo(app.clock.now() + VERIFICATION_MS)
  await send()
  expect(await ordersTypes()).toEqual([])
})

test('those that the bank rejects end the verification, and others can be started', async () => {
  await send()
  close()
  await submit()
  const { file_id } = (await fileOf())!
  const answer = { file_id, batch_numbers: [1], outcome: 'rejected' as const, reason: null }
  await reportAnswer(app, answer, operatorContext(), new AbortController().signal)
  expect(await verificationOf()).toBe('ended')
  await start()
  expect(await verificationOf()).toBe('started')
})

test('those that come back end the verification, whatever the code', async () => {
  await send()
  close()
  const [amountCents] = amountsOf(app, { verification_id: depositsId })
  const sent = {
    fileId: accountId,
    batchClosesAt: isoTime(closesAt),
    id: depositsId,
    amountCents,
    companyId: null,
    fingerprint: null,
  }
  const find = async () => [{ ...sent, kind: 'micro-deposit' as const }]
  const item = {
    ...({ kind: 'return', line: 1, code: 'R23', originalTrace: '1', isDebit: false, amountCents } as const),
    companyId: BALANCED.companyId,
  }
  expect(await applyItem({ app, find }, item, operatorContext())).toEqual({ outcome: 'applied' })
  expect(await verificationOf()).toBe('ended')
})

test('they are paid for three verifications of the same numbers in two weeks', async () => {
  const useUp = async () => {
    for (const _try of [1, 2, 3]) {
      const { state } = await app.commands.load(achAccount, accountId)
      await verifyAmounts(app, state!, [1, 1], operatorContext())
    }
  }
  await useUp()
  await start()
  const { commandId } = operatorContext()
  await useUp()
  for (const _again of [1, 2]) {
    accepted(await startVerification(app, { ach_account_id: accountId }, operatorContext(commandId)))
  }
  await useUp()
  expect(await tryToStart()).toMatchObject({ rejected: true, code: 'too_many_verifications' })
  moveTo(app.clock.now() + VERIFICATION_MS)
  await start()
})
