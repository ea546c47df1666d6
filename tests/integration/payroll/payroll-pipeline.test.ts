import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { CommandContext } from '../../../application/commands/command-context.ts'
import { CommandHandler } from '../../../application/commands/command-handler.ts'
import type { ProcessManagerRunner, RunnerOptions } from '../../../application/followers/runner.ts'
import { advanceClock } from '../../../application/operations/advance-clock.ts'
import { payrollPipeline } from '../../../application/payroll/payroll-pipeline-process-manager.ts'
import type { EventLog } from '../../../application/ports/event-log.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { type PayrollFile, payrollFile } from '../../../domain/payroll/payroll-file.ts'
import type { CanonicalRow } from '../../../domain/payroll/payroll-row.ts'
import { type Policy, type PolicyCommand, policy } from '../../../domain/policies/policy.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { newId, policyTerms, received, recorded, row } from '../../support/payroll.ts'
import { workItem } from '../../support/provider-outages.ts'
import { operatorContext } from '../../support/registrations.ts'
import { openWorkbench, until, type Workbench } from '../../support/workbench.ts'

let testDatabase: TestDatabase
let bench: Workbench
/** The command handler of the process that runs the pipeline now: a process has one. */
let commands: CommandHandler

// files do not meet: one database serves them all
beforeAll(async () => {
  testDatabase = await createTestDatabase()
})
afterAll(() => testDatabase?.drop())

beforeEach(async () => {
  bench = await openWorkbench(testDatabase.url)
  commands = bench.commands
})
afterEach(() => bench.close())

const context = (commandId?: string): CommandContext => ({
  ...operatorContext(commandId),
  correlationId: 'the-upload',
  environment: 'live',
})

function runPipeline(log: EventLog = bench.log, options: RunnerOptions = {}): Promise<ProcessManagerRunner> {
  const { registry, faults, clock } = bench
  // like a new process, which knows nothing from before
  commands = new CommandHandler(log, registry, clock)
  return bench.run([payrollPipeline({ log, registry, commands, faults })], options)
}

async function issuePolicy(changes: Partial<Policy> = {}) {
  const data = policyTerms(changes)
  const issued = await commands.execute(policy, data.policy_id, { type: 'Issue', data }, context())
  if (isRejection(issued)) throw new Error(issued.message)
  return data
}

/** Uploads a file in chunks, as many of them as given. */
async function upload(
  on: Pick<Policy, 'policy_id' | 'tenant_id' | 'employer_id' | 'policy_number'>,
  chunks: readonly CanonicalRow[][],
  chunkCount = chunks.length,
  policy_revision?: number,
): Promise<string> {
  const id = newId()
  const { type, data } = received(id, { rows: chunks.flat().length, chunks: chunkCount }, on)
  const events = [
    { type, data: { ...data, ...(policy_revision !== undefined && { policy_revision }) } },
    ...chunks.map((rows, chunk) => recorded(id, chunk, chunk === chunkCount - 1, rows)),
  ]
  await commands.appendAt(
    payrollFile,
    id,
    { state: payrollFile.initialState, revision: -1 },
    events,
    context(),
  )
  return id
}

/** Chunks of two rows: a green one of 1000.00 dollars and, in each second chunk, a red one. */
const chunksOf = (count: number): CanonicalRow[][] =>
  Array.from({ length: count }, (_, chunk) => [
    row({}, 2 * chunk + 1),
    row(chunk % 2 === 1 ? { class_code: '9999' } : { gross_wages: 20.25 }, 2 * chunk + 2),
  ])

async function fileOf(id: string): Promise<PayrollFile> {
  // nothing cached: what the log says
  return (await new CommandHandler(bench.log, bench.registry, bench.clock).load(payrollFile, id)).state
}

/** The steps in a file's stream, as `<event type without prefix> <chunk>`. */
async function steps(id: string): Promise<readonly string[]> {
  const stored = await bench.log.readStream(`payrollFile-${id}`)
  return stored.map((event) => {
    const { chunk } = JSON.parse(event.data) as { chunk?: number }
    return chunk === undefined ? event.type : `${event.type} ${chunk}`
  })
}

const numbered = (type: string, count: number) => Array.from({ length: count }, (_, n) => `${type} ${n}`)
const wholeStory = (chunks: number) => [
  'PayrollFileReceived',
  ...numbered('PayrollRowsRecorded', chunks),
  'PayrollFileNormalized',
  ...numbered('PayrollRowsValidated', chunks),
  ...numbered('PayrollWagesCalculated', chunks),
  ...numbered('PayrollPremiumCalculated', chunks),
]

describe('the payroll pipeline', () => {
  test('takes a file through all phases, under the correlation of its upload', async () => {
    const runner = await runPipeline()
    const id = await upload(await issuePolicy(), chunksOf(3))
    expect(await bench.drain(runner)).toBe(true)
    expect(await steps(id)).toEqual(wholeStory(3))
    expect(await fileOf(id)).toMatchObject({
      validated: { green: 5, red: 1 },
      // 3 x 1000.00 and 2 x 20.25 dollars, at 0.25 per 100: 2.50 and 0.050625
      wages: { rows: 5, cents: 304_050 },
      premium: { rows: 5, cents: 760 },
      failed: null,
    })
    const stored = await bench.log.readStream(`payrollFile-${id}`)
    const lastRows = stored[3]!
    for (const event of stored.slice(4)) {
      expect(JSON.parse(event.metadata)).toMatchObject({
        actor: { type: 'system', id: 'payroll-pipeline' },
        correlation_id: 'the-upload',
        causation_id: lastRows.eventId,
        environment: 'live',
      })
    }
  })

  test('works with the policy as of the revision that a file came with, whatever changed before', async () => {
    const terms = await issuePolicy()
    const id = await upload(terms, chunksOf(2), 2, 0)
    const change: PolicyCommand = { type: 'ChangeTerms', terms: { rates: [], class_codes: ['9999'] } }
    await commands.execute(policy, terms.policy_id, change, context())
    expect(await bench.drain(await runPipeline())).toBe(true)
    expect(await fileOf(id)).toMatchObject({
      policy_revision: 0,
      validated: { red: 1 },
      premium: { cents: 505 },
    })
  })

  test('works with the policy as of its normalization where a file came without one', async () => {
    const terms = await issuePolicy()
    let appends = 0
    const holding = replacedAppend(bench.log, async (append) => {
      appends += 1
      if (appends === 1) await bench.faults.inject('pipeline', 'hold', 1)
      return append()
    })
    const runner = await runPipeline(holding)
    const first = await upload(terms, chunksOf(2))
    expect(await bench.drain(runner)).toBe(true)
    expect(await steps(first)).toEqual(wholeStory(2).slice(0, 4))
    const change: PolicyCommand = {
      type: 'ChangeTerms',
      terms: { rates: [], class_codes: ['8810', '5606', '9999'] },
    }
    await commands.execute(policy, terms.policy_id, change, context())
    await bench.faults.inject('pipeline', 'hold', 0)
    const second = await upload(terms, chunksOf(2))
    expect(await bench.drain(runner)).toBe(true)
    expect(await fileOf(first)).toMatchObject({ validated: { red: 1 }, premium: { cents: 505 } })
    expect(await fileOf(second)).toMatchObject({
      policy_revision: 1,
      validated: { red: 0 },
      premium: { cents: 0 },
    })
  })

  test('fails a file whose policy does not exist', async () => {
    const runner = await runPipeline()
    const id = await upload(policyTerms(), chunksOf(1))
    expect(await bench.drain(runner)).toBe(true)
    expect((await fileOf(id)).failed).toEqual({
      stage: 'file_creation',
      error: 'The policy of this file does not exist',
    })
  })
})

describe('interrupted', () => {
  // ten chunks are more than one append takes: normalize, then twice per phase
  const CHUNKS = 10
  const APPENDS = 7

  for (const stored of [false, true]) {
    for (let cut = 1; cut <= APPENDS; cut += 1) {
      // the first, the last and one in the middle of a phase show what the others do
      const tags = [1, 4, APPENDS].includes(cut) ? [] : ['long']
      test(`${stored ? 'after' : 'before'} append ${cut}, it goes on with exactly one event per step`, {
        tags,
      }, async () => {
        const terms = await issuePolicy()
        let appends = 0
        const cutting = replacedAppend(bench.log, async (append) => {
          appends += 1
          if (appends !== cut) return append()
          if (stored) await append()
          void first.stop()
          throw new Error('cut')
        })
        const first = await runPipeline(cutting)
        const id = await upload(terms, chunksOf(CHUNKS))
        await until(() => appends >= cut)
        await first.stop()
        expect((await steps(id)).length).toBeLessThan(
          wholeStory(CHUNKS).length + Number(stored && cut === APPENDS),
        )

        const second = await runPipeline()
        expect(await bench.drain(second)).toBe(true)
        expect(await steps(id)).toEqual(wholeStory(CHUNKS))
        expect(await fileOf(id)).toMatchObject({ wages: { cents: 1_010_125 }, failed: null })
      })
    }
  }

  test('two workers on one file do each step once between them', async () => {
    const id = await upload(await issuePolicy(), chunksOf(CHUNKS))
    const item = workItem({ key: id, payload: {}, isLastTry: false })
    const { log, registry, clock, faults } = bench
    const outcomes = await Promise.all(
      [1, 2, 3].map(() => {
        const own = new CommandHandler(log, registry, clock)
        return payrollPipeline({ log, registry, commands: own, faults }).work['process-file'].run(item)
      }),
    )
    expect(outcomes).toEqual([{ outcome: 'done' }, { outcome: 'done' }, { outcome: 'done' }])
    const stored = await log.readStream(`payrollFile-${id}`)
    expect(stored.map((event) => event.type)).toHaveLength(wholeStory(CHUNKS).length)
    expect(await steps(id)).toEqual(wholeStory(CHUNKS))
  })

  test('by somebody else on the file, it goes on from what they stored', async () => {
    const terms = await issuePolicy()
    const chunks = chunksOf(CHUNKS)
    let appends = 0
    const racing = replacedAppend(bench.log, async (append) => {
      appends += 1
      if (appends === 2) {
        // a single chunk, not the eight that this worker is about to store
        const other = new CommandHandler(bench.log, bench.registry, bench.clock)
        const rows = recorded(newId(), 0, false, chunks[0]!).data
        const command = { type: 'ValidateChunk', recorded: { ...rows, file_id: id }, terms } as const
        await other.execute(payrollFile, id, command, context())
      }
      return append()
    })
    const id = await upload(terms, chunks)
    const runner = await runPipeline(racing)
    expect(await bench.drain(runner)).toBe(true)
    expect(await steps(id)).toEqual(wholeStory(CHUNKS))
    expect(bench.reports).toEqual([])
  })

  test('by errors that go on, it gives the file up with an error that quotes nothing', async () => {
    const terms = await issuePolicy()
    const broken = replacedAppend(bench.log, () => Promise.reject(new TypeError('Bob Smith')), {
      only: 'PayrollFileNormalized',
    })
    const runner = await runPipeline(broken, { backoff: { firstMs: 1, mostMs: 2 } })
    const id = await upload(terms, chunksOf(1))
    expect(await bench.drain(runner)).toBe(true)
    const { failed } = await fileOf(id)
    expect(failed?.stage).toBe('file_creation')
    expect(failed?.error).toMatch(/^Processing failed 10 times: TypeError/)
    expect(failed?.error).not.toContain('Bob')
    expect(await runner.failedWork(1)).toMatchObject([{ kind: 'process-file', key: id, attempts: 10 }])
  })
})

describe('an upload', () => {
  const advance = (runner: ProcessManagerRunner, seconds: number) => {
    const { clock, store: work, leases, notices } = bench
    const settle = (ms: number) => bench.drain(runner, ms)
    return advanceClock({ commands, clock, work, leases, notices, settle }, { seconds }, context())
  }

  test('that breaks off fails its file 60 seconds later', async () => {
    const runner = await runPipeline()
    const id = await upload(await issuePolicy(), chunksOf(1), 2)
    await bench.drain(runner)
    await advance(runner, 59.999)
    expect((await fileOf(id)).failed).toBeNull()
    await advance(runner, 0.001)
    await bench.drain(runner)
    expect((await fileOf(id)).failed).toEqual({
      stage: 'file_creation',
      error: 'The upload was interrupted before all rows were stored',
    })
  })

  test('whose last rows come in time is processed and never failed', async () => {
    const runner = await runPipeline()
    const chunks = chunksOf(2)
    const id = await upload(await issuePolicy(), chunks.slice(0, 1), 2)
    await bench.drain(runner)
    await advance(runner, 59)
    const rows: CanonicalRow[] = chunks[1]!
    await commands.execute(payrollFile, id, { type: 'RecordRows', rows }, context())
    await bench.drain(runner)
    expect(await bench.store.counts({ now: bench.clock.now() })).toMatchObject({
      due: 0,
      later: 0,
    })
    await advance(runner, 3600)
    expect(await steps(id)).toEqual(wholeStory(2))
  })
})

describe('injected faults', () => {
  test.each([
    ['decline', 'The payroll pipeline refused the file'],
    ['timeout', 'The payroll pipeline did not answer in time'],
  ] as const)('%s fails the next file only', async (mode, error) => {
    await bench.faults.inject('pipeline', mode, 1)
    const terms = await issuePolicy()
    const runner = await runPipeline()
    const first = await upload(terms, chunksOf(2))
    await bench.drain(runner)
    const second = await upload(terms, chunksOf(2))
    await bench.drain(runner)
    expect((await fileOf(first)).failed).toEqual({ stage: 'file_creation', error })
    expect(await steps(second)).toEqual(wholeStory(2))
  })

  test('hold stops a file before its next phase until it is cleared', async () => {
    await bench.faults.inject('pipeline', 'hold', 1)
    const runner = await runPipeline()
    const id = await upload(await issuePolicy(), chunksOf(3))
    expect(await bench.drain(runner)).toBe(true)
    expect(await steps(id)).toEqual(wholeStory(3).slice(0, 4))
    await bench.faults.inject('pipeline', 'hold', 0)
    expect(await bench.drain(runner)).toBe(true)
    expect(await steps(id)).toEqual(wholeStory(3))
  })

  test('hold in the middle of a phase lets the phase end', async () => {
    const id = await upload(await issuePolicy(), chunksOf(10))
    let appends = 0
    const holding = replacedAppend(bench.log, async (append) => {
      appends += 1
      // the first half of the validation is about to be stored
      if (appends === 2) await bench.faults.inject('pipeline', 'hold', 1)
      return append()
    })
    const runner = await runPipeline(holding)
    expect(await bench.drain(runner)).toBe(true)
    expect(await steps(id)).toEqual(wholeStory(10).slice(0, 1 + 10 + 1 + 10))
    await bench.faults.inject('pipeline', 'hold', 0)
    expect(await bench.drain(runner)).toBe(true)
    expect(await steps(id)).toEqual(wholeStory(10))
  })
})

/** The log with another way to append what the pipeline appends, or only one type of it. */
function replacedAppend(
  log: EventLog,
  replacement: (append: () => ReturnType<EventLog['append']>) => ReturnType<EventLog['append']>,
  { only }: { only?: string } = {},
): EventLog {
  return new Proxy(log, {
    get(target, name: keyof EventLog) {
      if (name === 'append') {
        return (...args: Parameters<EventLog['append']>) => {
          const append = () => target.append(...args)
          const { type } = args[2][0]!
          const isPhase = type.startsWith('Payroll') && type !== 'PayrollFileReceived'
          return isPhase && (only ?? type) === type ? replacement(append) : append()
        }
      }
      const value = target[name]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
