import { randomUUID } from 'node:crypto'
import { beforeEach, expect } from 'vitest'
import { z } from 'zod'
import { EventRegistry } from '../../application/commands/event-registry.ts'
import type { Clock } from '../../application/ports/clock.ts'
import { type EventLog, WrongExpectedRevision } from '../../application/ports/event-log.ts'
import type { Leases } from '../../application/ports/leases.ts'
import type { Statement } from '../../application/ports/read-database.ts'
import {
  bigint,
  integer,
  orNull,
  type RowOf,
  table,
  text,
  timestamptz,
} from '../../application/queries/table.ts'
import { type DomainEvent, eventType } from '../../domain/kernel/event-type.ts'
import type { HeldBackRebuild } from '../../domain/operations/read-model-rebuild.ts'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { type Database, openDatabase } from '../../infrastructure/database/database.ts'
import { HeldLeases } from '../../infrastructure/ownership/leases.ts'
import { PostgresProjectionStore } from '../../infrastructure/read-models/projection-store.ts'
import { PostgresReadDatabase } from '../../infrastructure/read-models/read-database.ts'
import { type Projection, projection } from '../../projections/runtime/projection.ts'
import type { CatchUp } from '../../projections/runtime/projection-runner.ts'
import type { ProjectionStatus } from '../../projections/runtime/projection-status.ts'
import { Projections } from '../../projections/runtime/projections.ts'
import type { ProjectionStore } from '../../projections/runtime/store.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { openTestLog, revisionOf } from './log.ts'

// ---- accounts, a domain small enough to break on purpose

export const Opened = eventType('Opened', { account: z.string(), owner: z.string() })
const Paid = eventType('Paid', { account: z.string(), cents: z.number().int(), note: z.string() })
/** Nothing projects it. */
export const Noted = eventType('Noted', { text: z.string() })

const accountAggregate = {
  category: 'account',
  events: [Opened, Paid, Noted],
  initialState: null,
  evolve: () => null,
}

export const opened = (account: string) => Opened.of({ account, owner: `owner of ${account}` })
export const paid = (account: string, cents = 100, note = '') => Paid.of({ account, cents, note })
const TOO_MANY = 'too many'
/** The database refuses it: its row counts more payments than a column holds. */
export const refused = (account: string) => paid(account, 100, TOO_MANY)

const accountsTable = table('accounts', {
  key: ['account'],
  columns: {
    account: text(),
    owner: text(),
    balance: bigint(),
    payments: integer(),
    note: orNull(text()),
    updated_at: timestamptz(),
  },
  indexes: [['owner', 'balance desc']],
})
const withExtra = table('accounts', {
  key: accountsTable.key,
  columns: { ...accountsTable.columns, extra: orNull(text()) },
  indexes: [['owner', 'balance desc']],
})
export type AccountRow = RowOf<typeof accountsTable>

/** One row per account. `breaks` makes the handler of a payment throw. */
export function accounts(
  options: {
    version?: number
    breaks?: (account: string) => boolean
    extra?: boolean
    times?: number
    personal?: readonly string[]
  } = {},
): Projection {
  const times = options.times ?? 1
  return projection({
    name: 'accounts',
    version: options.version ?? 1,
    tables: [
      {
        ...(options.extra ? withExtra : (accountsTable as typeof withExtra)),
        personal: options.personal ?? [],
      },
    ],
    handlers: (on) => [
      on(Opened, {
        apply: ({ data, metadata }, { accounts }) =>
          accounts.put({ ...data, balance: 0, payments: 0, updated_at: metadata.recorded_at }),
      }),
      on(Paid, {
        reads: ({ data }) => ({ accounts: [[data.account]] }),
        apply({ data, metadata }, { accounts }) {
          if (options.breaks?.(data.account)) throw new Error(`the secret of ${data.account}`)
          const row = accounts.get(data.account)!
          accounts.change([data.account], {
            balance: row.balance + data.cents * times,
            payments: data.note === TOO_MANY ? 2 ** 31 : row.payments + 1,
            note: `${row.note ?? ''}${data.note}`,
            updated_at: metadata.recorded_at,
            ...(options.extra ? { extra: 'more' } : {}),
          })
        },
      }),
    ],
  })
}

// ---- processes

const ALL_ACCOUNTS: Statement<object, AccountRow> = {
  name: 'test/accounts',
  text: 'SELECT account, owner, balance, payments, note, updated_at FROM read_model.accounts ORDER BY account',
  parameters: [],
}

/** One process of the service, as far as projections go. */
export interface ProjectionProcess {
  readonly owner: string
  readonly database: Database
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly store: PostgresProjectionStore
  readonly read: PostgresReadDatabase
  readonly projections: Projections
  /** Rebuilds that a person was called to. */
  readonly heldBack: readonly HeldBackRebuild[]
  /** Appends to the account's stream, whatever its revision. @returns the position of the last event. */
  append(account: string, ...events: readonly DomainEvent[]): Promise<bigint>
  /** Waits for the projection to reach the head of the log; fails when it does not. */
  caughtUp(timeoutMs?: number): Promise<void>
  status(): Promise<ProjectionStatus>
  /** Waits until the status is as wanted. */
  until(what: (status: ProjectionStatus) => boolean, timeoutMs?: number): Promise<ProjectionStatus>
  accounts(): Promise<readonly AccountRow[]>
  close(): Promise<void>
}

export async function openProcess(
  url: string,
  projection: Projection,
  options: {
    owner?: string
    clock?: Clock
    ttlMs?: number
    start?: boolean
    /** Where a rebuild that is far behind catches up; in place of a thread. */
    catchUp?: CatchUp
    /** Puts something between the runtime and its leases. */
    leasesThrough?: (leases: Leases) => Leases
    /** Methods of the runtime's store that behave otherwise than its own. */
    storeThrough?: (store: ProjectionStore) => OtherStore
  } = {},
): Promise<ProjectionProcess> {
  const owner = options.owner ?? randomUUID()
  const database = await openDatabase({ url })
  const log = await openTestLog(database, url)
  const registry = new EventRegistry([accountAggregate])
  const store = new PostgresProjectionStore(database)
  const leases = await HeldLeases.open(database, { owner, ttlMs: options.ttlMs ?? 10_000 })
  const heldBack: HeldBackRebuild[] = []
  const projections = new Projections({
    projections: [projection],
    log,
    registry,
    store: throughOther(store, options.storeThrough?.(store) ?? {}),
    leases: options.leasesThrough?.(leases) ?? leases,
    clock: options.clock ?? systemClock,
    heldBack: async (rebuild) => void heldBack.push(rebuild),
    ...(options.catchUp && { catchUp: options.catchUp }),
    retryMs: 20,
  })
  if (options.start ?? true) await projections.start()
  const read = new PostgresReadDatabase(database.pool)
  const status = async () => (await projections.list()).find((one) => one.name === projection.name)!
  return {
    owner,
    database,
    log,
    registry,
    store,
    read,
    projections,
    heldBack,
    status,
    async append(account, ...events) {
      const encoded = events.map((event) =>
        registry.encode(event, {
          tenant_id: null,
          environment: null,
          actor: { type: 'system', id: 'test' },
          correlation_id: 'test',
          causation_id: 'test',
          recorded_at: new Date(systemClock.now()).toISOString(),
        }),
      )
      const stream = `account-${account}`
      for (;;) {
        try {
          return (await log.append(stream, await revisionOf(log, stream), encoded)).position
        } catch (error) {
          // others append to it at the same time
          if (!(error instanceof WrongExpectedRevision)) throw error
        }
      }
    },
    async caughtUp(timeoutMs = 240_000) {
      const head = await log.head()
      if (!(await projections.reached([projection.name], head, { timeoutMs }))) {
        throw new Error(`not caught up: ${JSON.stringify(await status())}`)
      }
    },
    async until(what, timeoutMs = 240_000) {
      await expect.poll(async () => what(await status()), { timeout: timeoutMs, interval: 10 }).toBe(true)
      return status()
    },
    accounts: () => read.query(ALL_ACCOUNTS, {}),
    async close() {
      await projections.stop()
      await log.close()
      await leases.close()
      await database.close()
    },
  }
}

/** Gives every test of the file an empty database. @returns what opens processes on it, which end with the test. */
export function projectionProcesses() {
  let database: TestDatabase
  const open: ProjectionProcess[] = []
  beforeEach(async () => {
    database = await createTestDatabase()
    return async () => {
      for (const process of open.splice(0)) await process.close()
      await database.drop()
    }
  })
  return {
    url: () => database.url,
    async start(projection: Projection = accounts(), options?: Parameters<typeof openProcess>[2]) {
      const process = await openProcess(database.url, projection, options)
      open.push(process)
      return process
    },
  }
}

/** Methods of the parts of a store. */
type OtherStore = { readonly [Part in keyof ProjectionStore]?: Partial<ProjectionStore[Part]> }

function throughOther(store: ProjectionStore, other: OtherStore): ProjectionStore {
  const part = <Part extends object>(own: Part, methods: Partial<Part> = {}): Part =>
    new Proxy(own, {
      get(target, name) {
        const method = methods[name as keyof Part] ?? Reflect.get(target, name)
        return typeof method === 'function' ? method.bind(target) : method
      },
    })
  return {
    generations: part(store.generations, other.generations),
    pages: part(store.pages, other.pages),
    requests: part(store.requests, other.requests),
  }
}
