import { beforeEach, describe, expect, it, test } from 'vitest'
import { ProjectionStoreError } from '../../../projections/runtime/failures.ts'
import {
  accounts,
  opened,
  type ProjectionProcess,
  paid,
  projectionProcesses,
  refused,
} from '../../support/projection-process.ts'

const { start } = projectionProcesses()

/** Another process in its place, which has nothing in memory. */
async function restarted(process: ProjectionProcess) {
  await process.projections.stop()
  return start()
}

describe.each([
  ['its handler cannot take', 'handler'],
  ['the database refuses', 'data'],
])('an event that %s', (_, category) => {
  let broken = true
  const projection = accounts({ breaks: (account) => broken && account === 'bad' && category === 'handler' })
  const poison = () => (category === 'data' ? refused('bad') : paid('bad'))

  beforeEach(() => {
    broken = true
  })

  it('dead-letters its stream and nothing else', async () => {
    const process = await start(projection)
    await process.append('bad', opened('bad'))
    await process.append('good', opened('good'))
    const position = await process.append('bad', poison())
    await process.append('good', paid('good'))
    await process.append('bad', paid('bad'), paid('bad'))
    await process.append('good', paid('good'))
    await process.caughtUp()
    expect(await process.accounts()).toMatchObject([
      { account: 'bad', payments: 0 },
      { account: 'good', payments: 2 },
    ])
    const status = await process.until(({ state }) => state === 'parked')
    expect(status).toMatchObject({ parked_streams: 1, lag: { events: 0 } })
    const { parked } = await process.projections.show('accounts')
    expect(parked).toMatchObject([
      {
        stream: 'account-bad',
        position: Number(position),
        revision: 1,
        type: 'Paid',
        category,
        attempts: 1,
        parked_at: expect.stringMatching(/Z$/),
      },
    ])
    expect(parked[0]!.message).toMatch(category === 'data' ? /SQLSTATE 22003/ : /Error at projection-process/)
    expect(JSON.stringify(parked)).not.toMatch(/secret|many/)
  })

  it('stays dead-lettered over a restart, with what came after it still held back', async () => {
    const process = await start(projection)
    await process.append('bad', opened('bad'), poison())
    await process.caughtUp()
    await process.projections.stop()
    const next = await start(projection)
    await next.append('bad', paid('bad'))
    await next.append('good', opened('good'))
    await next.caughtUp()
    expect(await next.accounts()).toMatchObject([{ account: 'bad', payments: 0 }, { account: 'good' }])
    expect((await next.status()).parked_streams).toBe(1)
  })

  it('is counted by a dry run, which changes nothing; tried again in vain it has one more attempt', async () => {
    const process = await start(projection)
    await process.append('bad', opened('bad'), poison(), paid('bad'), paid('bad'))
    await process.caughtUp()
    const redrive = (options: { readonly stream?: string; readonly dryRun?: boolean } = {}) =>
      process.projections.redrive('accounts', options)
    const nothing = { streams: 0, events: 0 }
    expect(await redrive({ dryRun: true })).toEqual({ streams: 1, events: 3, remaining: 1, dry_run: true })
    expect(await redrive({ stream: 'account-other', dryRun: true })).toMatchObject(nothing)
    const parked = async () => (await process.projections.show('accounts')).parked
    const stands = { stream: 'account-bad', revision: 1, category }
    expect(await parked()).toMatchObject([{ ...stands, attempts: 1 }])
    expect(await redrive()).toMatchObject({ streams: 1, events: 0, remaining: 1 })
    expect(await parked()).toMatchObject([{ ...stands, attempts: 2 }])
  })
})

describe('U+0000 or half of a surrogate pair, which no text of the database holds', () => {
  it('is replaced, and nothing is dead-lettered', async () => {
    const process = await start()
    const notes = ['a\ud83d', ' \ude00b', ' \\ud83d ', '😀"\\\ud83d', 'c\0 \\u0000']
    await process.append('odd', opened('odd'), ...notes.map((note) => paid('odd', 1, note)))
    await process.caughtUp()
    expect(await process.accounts()).toMatchObject([
      { payments: 5, note: 'a\ufffd \ufffdb \\ud83d 😀"\\\ufffdc\ufffd \\u0000' },
    ])
    expect(await process.status()).toMatchObject({ state: 'active', parked_streams: 0 })
  })

  it('in a key dead-letters its stream alone, whether it is written or looked for', async () => {
    const process = await start()
    await process.append('written', opened('a\0'))
    await process.append('looked-for', paid('b\0'))
    await process.append('half', paid('c\ud83d'))
    await process.append('good', opened('good'), paid('good'))
    await process.caughtUp()
    expect(await process.accounts()).toMatchObject([{ account: 'good', payments: 1 }])
    const { parked } = await process.projections.show('accounts')
    expect(parked.map(({ stream, category }) => `${stream} ${category}`).sort()).toEqual([
      'account-half handler',
      'account-looked-for handler',
      'account-written handler',
    ])
  })
})

test('the event before one that the database refuses is applied once, also where its own write fails', async () => {
  let fails = false
  let isAsked = false
  const process = await start(accounts(), {
    storeThrough: ({ pages }) => ({
      pages: {
        async fetch() {
          isAsked = true
          throw new ProjectionStoreError('data', 'no such text')
        },
        async write(...page) {
          if (!fails || page[1].tables.length === 0) return pages.write(...page)
          fails = false
          isAsked = false
          // long enough for the next event to be read, if it were
          for (let n = 0; n < 200 && !isAsked; n += 1) await pages.deadLettered(page[0])
          throw new ProjectionStoreError('transient', 'the connection was lost')
        },
      },
    }),
  })
  await process.append('first', opened('first'))
  await process.caughtUp()
  await process.projections.pause('accounts')
  await process.append('good', opened('good'))
  await process.append('bad', paid('bad'))
  fails = true
  await process.projections.resume('accounts')
  await process.caughtUp()
  expect(await process.accounts()).toMatchObject([{ account: 'first' }, { account: 'good', payments: 0 }])
  expect((await process.status()).parked_streams).toBe(1)
})

describe('redrive', () => {
  it('applies what was held back, in order, once the cause is gone', async () => {
    let broken = true
    const process = await start(accounts({ breaks: (account) => broken && account.startsWith('bad') }))
    for (const account of ['bad-1', 'bad-2']) {
      await process.append(account, opened(account), paid(account, 1, 'first'), paid(account, 2, 'second'))
    }
    await process.caughtUp()
    broken = false
    expect(await process.projections.redrive('accounts', { stream: 'account-bad-1' })).toEqual({
      streams: 1,
      events: 2,
      remaining: 1,
      dry_run: false,
    })
    expect(await process.accounts()).toMatchObject([
      { account: 'bad-1', balance: 3, note: 'firstsecond' },
      { account: 'bad-2', balance: 0 },
    ])
    expect(await process.projections.redrive('accounts')).toMatchObject({
      streams: 1,
      events: 2,
      remaining: 0,
    })
    await process.until(({ state }) => state === 'active')
    await process.append('bad-2', paid('bad-2', 4, 'third'))
    await process.caughtUp()
    expect(await process.accounts()).toMatchObject([{ balance: 3 }, { balance: 7, note: 'firstsecondthird' }])
  })

  // the one before it applies what was held back
  it('goes through long streams page by page and is dead-lettered again at the event that fails', {
    tags: 'long',
  }, async () => {
    let broken = true
    const process = await start(accounts({ breaks: () => broken }))
    await process.append('long', opened('long'))
    for (let index = 0; index < 5; index += 1) {
      await process.append('long', ...Array.from({ length: 50 }, () => paid('long', 1)))
    }
    const poison = await process.append('long', refused('long'))
    await process.append('long', paid('long', 1))
    await process.caughtUp()
    broken = false
    expect(await process.projections.redrive('accounts')).toMatchObject({ events: 250, remaining: 1 })
    const { parked } = await process.projections.show('accounts')
    expect(parked).toMatchObject([{ revision: 251, position: Number(poison), category: 'data' }])
    expect(await process.accounts()).toMatchObject([{ payments: 250 }])
  })
})

describe('redrive of a stream of which an event was never applied', () => {
  /** As if the projection had passed over the event that opened the account. */
  const forget = (process: ProjectionProcess, account: string) =>
    process.database.pool.query('DELETE FROM read_model.accounts WHERE account = $1', [account])
  const redrive = (process: ProjectionProcess) => process.projections.redrive('accounts')

  it('applies it from its beginning, where the tables hold nothing of it', async () => {
    const process = await start()
    await process.append('other', opened('other'), paid('other', 1))
    await process.append('lost', opened('lost'), ...Array.from({ length: 250 }, () => paid('lost', 1)))
    await process.caughtUp()
    await forget(process, 'lost')
    const next = await restarted(process)
    await next.append('lost', paid('lost', 2), paid('lost', 4))
    await next.append('other', paid('other', 8))
    await next.caughtUp()
    expect(await next.status()).toMatchObject({ state: 'parked', parked_streams: 1 })
    expect(await redrive(next)).toMatchObject({ streams: 1, events: 253, remaining: 0 })
    await next.append('lost', paid('lost', 8))
    await next.caughtUp()
    expect(await next.accounts()).toMatchObject([
      { account: 'lost', balance: 264, payments: 253 },
      { account: 'other', balance: 9, payments: 2 },
    ])
    expect(await next.status()).toMatchObject({ state: 'active', parked_streams: 0 })
  })

  it('says that a rebuild is needed, where they hold something of it', async () => {
    const process = await start()
    await process.append('kept', opened('kept'), opened('lost'), paid('kept', 1))
    await process.caughtUp()
    await forget(process, 'lost')
    const next = await restarted(process)
    await next.append('kept', paid('lost', 2), paid('kept', 4))
    await next.caughtUp()
    for (const attempts of [2, 3]) {
      expect(await redrive(next)).toMatchObject({ streams: 1, events: 0, remaining: 1 })
      const { parked } = await next.projections.show('accounts')
      expect(parked).toMatchObject([{ stream: 'account-kept', revision: 3, attempts }])
      expect(parked[0]!.message).toMatch(/^[^;]+; an earlier event .* rebuild the projection$/)
    }
    expect(await next.accounts()).toMatchObject([{ account: 'kept', balance: 1, payments: 1 }])
    await next.projections.rebuild('accounts')
    await next.until(({ rebuild }) => rebuild?.comparison != null)
    await next.projections.switch('accounts')
    await next.until(({ state, generation }) => state === 'active' && generation === 2)
    expect(await next.accounts()).toMatchObject([
      { account: 'kept', balance: 5, payments: 2 },
      { account: 'lost', balance: 2, payments: 1 },
    ])
  })

  it('leaves it waiting where it waits, when the database refuses an event before', async () => {
    let isRefused = false
    const process = await start(accounts(), {
      storeThrough: ({ pages }) => ({
        pages: {
          async fetch(generation, table, keys) {
            if (!isRefused || !JSON.stringify(keys).includes('other')) {
              return pages.fetch(generation, table, keys)
            }
            throw new ProjectionStoreError('data', 'no such text')
          },
        },
      }),
    })
    await process.append('other', opened('other'))
    await process.append('lost', opened('lost'), paid('other', 1), paid('lost', 1))
    await process.caughtUp()
    await forget(process, 'lost')
    await process.projections.pause('accounts')
    await process.projections.resume('accounts')
    await process.append('lost', paid('lost', 2))
    await process.caughtUp()
    isRefused = true
    expect(await redrive(process)).toMatchObject({ streams: 1, events: 0, remaining: 1 })
    const { parked } = await process.projections.show('accounts')
    expect(parked).toMatchObject([{ stream: 'account-lost', revision: 3, category: 'data', attempts: 2 }])
    expect(await process.accounts()).toMatchObject([{ account: 'other', balance: 1, payments: 1 }])
  })

  it('leaves the tables alone while its event fails for another reason', async () => {
    let broken = true
    const process = await start(accounts({ breaks: () => broken }))
    await process.append('lost', opened('lost'), paid('lost', 1))
    await process.caughtUp()
    await forget(process, 'lost')
    expect(await redrive(process)).toMatchObject({ events: 0, remaining: 1 })
    const { parked } = await process.projections.show('accounts')
    expect(parked[0]!.message).not.toContain('rebuild')
    expect(await process.accounts()).toEqual([])
    broken = false
    expect(await redrive(process)).toMatchObject({ events: 2, remaining: 0 })
    expect(await process.accounts()).toMatchObject([{ account: 'lost', balance: 1, payments: 1 }])
  })
})

describe('many bad events among many good ones', () => {
  it('are found, each dead-letters its own stream, and every good event is applied once', async () => {
    const process = await start(accounts({ breaks: (account) => account.endsWith('3') }))
    await process.projections.pause('accounts')
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const account = String(index).padStart(2, '0')
        const events = Array.from({ length: 5 }, (_, at) =>
          account.endsWith('7') && at === 2 ? refused(account) : paid(account, 1),
        )
        await process.append(account, opened(account), ...events)
      }),
    )
    await process.projections.resume('accounts')
    await process.caughtUp()
    const rows = await process.accounts()
    expect(rows).toHaveLength(20)
    for (const { account, payments } of rows) {
      expect([account, payments]).toEqual([
        account,
        account.endsWith('3') ? 0 : account.endsWith('7') ? 2 : 5,
      ])
    }
    expect((await process.status()).parked_streams).toBe(4)
  })
})
