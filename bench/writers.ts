import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { eventRows, openOurLog } from './our-log.ts'
import { openPlainWriter } from './peers/plain-postgres.ts'
import { ended, hasEnded, running } from './servers.ts'
import { type Beside, type Figure, throughput } from './statistics.ts'
import { idOf } from './timesheets.ts'

/** A process that appends single events to new streams of our log, or inserts such rows into a plain table. */
export interface WriterSpec {
  readonly url: string
  /** Appends, or rows of an INSERT, at once. */
  readonly atOnce: number
  /** The plain table; null: our log. */
  readonly table: string | null
  /** Which of the processes it is: each has positions of its own. */
  readonly index: number
}

/** What one of the processes did, by the clock that all of them share, in milliseconds. */
interface Written extends Beside {
  readonly from: number
  readonly to: number
}

/** So many events are made ready; then, asked again with `go`, they are written. */
type Question = { readonly prepare: number } | { readonly go: true }

export interface Writers {
  /** Each of the processes writes its share of so many events. */
  write(events: number): Promise<Figure>
  stop(): Promise<void>
}

/** Starts processes that write side by side. @param specs one for each of them. */
export async function startWriters(specs: readonly WriterSpec[]): Promise<Writers> {
  const children = specs.map((spec): Writing => {
    const child = fork(process.argv[1]!, ['--write-log', JSON.stringify(spec)])
    return { child, gone: ended(child) }
  })
  const writers: Writers = {
    async write(events) {
      const share = Math.ceil(events / children.length)
      await Promise.all(children.map((child) => ask(child, { prepare: share })))
      const written = await Promise.all(children.map((child) => ask<Written>(child, { go: true })))
      const from = Math.min(...written.map((one) => one.from))
      const to = Math.max(...written.map((one) => one.to))
      return {
        value: ((share * children.length) / (to - from)) * 1000,
        // those of the slower process
        ...written.toSorted((a, b) => (b.p99 ?? 0) - (a.p99 ?? 0)).map(({ p50, p99 }) => ({ p50, p99 }))[0]!,
      }
    },
    async stop() {
      running.delete(writers)
      await Promise.all(children.map(end))
    },
  }
  running.add(writers)
  // answered when the process is ready
  await Promise.all(children.map((child) => ask(child, { prepare: 0 })))
  return writers
}

/** A process, with how it ended, once it has. */
interface Writing {
  readonly child: ChildProcess
  readonly gone: Promise<string>
}

function ask<Answer>({ child, gone }: Writing, question: Question): Promise<Answer> {
  return new Promise((resolve, reject) => {
    gone.then((how) => reject(new Error(`A writing process ${how}`)))
    child.once('message', (answer) => resolve(answer as Answer))
    child.send(question)
  })
}

async function end({ child, gone }: Writing): Promise<void> {
  if (hasEnded(child)) return
  child.disconnect()
  await gone
}

/** The other side of {@link startWriters}: runs in the child process until its parent lets go. */
export async function runWriter(specText: string): Promise<void> {
  const spec = JSON.parse(specText) as WriterSpec
  const questions: Question[] = []
  let wake: () => void = () => undefined
  let isOver = false
  process.on('message', (question: Question) => {
    questions.push(question)
    wake()
  })
  process.once('disconnect', () => {
    isOver = true
    wake()
  })
  const writer = await (spec.table === null ? openOurs(spec) : openPlain(spec, spec.table))
  let write: () => Promise<Written> = () => Promise.reject(new Error('nothing was prepared'))
  while (!isOver) {
    const question = questions.shift()
    if (!question) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    } else if ('prepare' in question) {
      write = writer.prepare(question.prepare)
      globalThis.gc?.()
      process.send!({})
    } else {
      process.send!(await write())
    }
  }
  await writer.close()
}

interface Writer {
  /** Makes what is written outside the time taken. @returns what writes it. */
  prepare(events: number): () => Promise<Written>
  close(): Promise<void>
}

const now = () => performance.timeOrigin + performance.now()

async function openOurs({ url, atOnce }: WriterSpec): Promise<Writer> {
  const log = await openOurLog({ url })
  return {
    prepare(events) {
      const ids = Array.from({ length: events }, () => idOf(randomUUID()))
      return async () => {
        const from = now()
        const { p50, p99 } = await throughput(events, atOnce, (index) => log.append(ids[index]!, 1))
        return { from, to: now(), p50, p99 }
      }
    },
    close: () => log.close(),
  }
}

async function openPlain({ url, atOnce, index }: WriterSpec, table: string): Promise<Writer> {
  const plain = await openPlainWriter(url, table, { rowsPerInsert: atOnce, connections: 1 })
  let next = 1 + index * 1_000_000_000
  return {
    prepare(events) {
      const rows = eventRows(next, events)
      next += events
      return async () => {
        const from = now()
        await plain.insert(rows)
        return { from, to: now() }
      }
    },
    close: () => plain.close(),
  }
}
