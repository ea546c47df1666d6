// @module-tag each-log
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import type { CommandContext } from '../../../application/commands/command-context.ts'
import { uploadChunks } from '../../../application/commands/upload-chunks.ts'
import { type PayrollFileCommand, payrollFile } from '../../../domain/payroll/payroll-file.ts'
import { newId, policyTerms, received, row } from '../../support/payroll.ts'
import { operatorContext } from '../../support/registrations.ts'
import { openWorkbench, type Workbench } from '../../support/workbench.ts'

let bench: Workbench

beforeAll(async () => {
  bench = await openWorkbench()
})
afterAll(() => bench?.close())

const contextOf = (commandId?: string): CommandContext => ({
  ...operatorContext(commandId),
  environment: 'live',
})

/** Uploads so many chunks of one row. */
function upload(id: string, commandId: string, count: number) {
  const { data } = received(id, { rows: count, chunks: count }, policyTerms())
  const chunks = Array.from(
    { length: count },
    (_, index): PayrollFileCommand => ({ type: 'RecordRows', rows: [row({}, index + 1)] }),
  )
  return uploadChunks(bench, payrollFile, id, { type: 'Receive', data }, chunks, contextOf(commandId))
}

/** Lets so many appends through; the next one fails. */
function dyingAfter(appends: number): { [Symbol.dispose](): void } {
  const append = bench.log.append.bind(bench.log)
  let left = appends
  const spy = vi.spyOn(bench.log, 'append').mockImplementation(async (...args) => {
    if (left === 0) throw new Error('died')
    left -= 1
    return append(...args)
  })
  return { [Symbol.dispose]: () => spy.mockRestore() }
}

test('chunks are stored one per append, and a second attempt goes on where the first died', async () => {
  const id = newId()
  const commandId = randomUUID()
  {
    using _dying = dyingAfter(2)
    await expect(upload(id, commandId, 7)).rejects.toThrow('died')
  }
  expect((await bench.commands.load(payrollFile, id)).state.chunks_recorded).toBe(2)
  for (const _again of [1, 2]) {
    const { state, revision } = await upload(id, commandId, 7)
    expect([state.chunks_recorded, state.rows_recorded, revision]).toEqual([7, 7, 7])
  }
})

test.each([3, 9])('an upload of 7 chunks does not go on with %i', async (count) => {
  const id = newId()
  const commandId = randomUUID()
  {
    using _dying = dyingAfter(2)
    await expect(upload(id, commandId, 7)).rejects.toThrow('died')
  }
  await expect(upload(id, commandId, count)).rejects.toThrow('announced with 7 chunks')
  expect((await bench.commands.load(payrollFile, id)).state.chunks_recorded).toBe(2)
})

test('an upload that was given up takes no more chunks', async () => {
  const id = newId()
  const commandId = randomUUID()
  {
    using _dying = dyingAfter(1)
    await expect(upload(id, commandId, 7)).rejects.toThrow('died')
  }
  const fail = { type: 'Fail', stage: 'file_creation', error: 'given up' } as const
  await bench.commands.execute(payrollFile, id, fail, contextOf(randomUUID()))
  const { state } = await upload(id, commandId, 7)
  expect([state.failed?.error, state.chunks_recorded]).toEqual(['given up', 1])
})

test('of several uploads at once, one stores a chunk per turn of the event loop', async () => {
  let turn = 0
  let next = setImmediate(function count() {
    turn += 1
    next = setImmediate(count)
  })
  const turns: number[] = []
  const append = bench.log.append.bind(bench.log)
  const spy = vi.spyOn(bench.log, 'append').mockImplementation((...args) => {
    turns.push(turn)
    return append(...args)
  })
  onTestFinished(() => {
    clearImmediate(next)
    spy.mockRestore()
  })
  await Promise.all(Array.from({ length: 5 }, () => upload(newId(), randomUUID(), 3)))
  expect(turns).toHaveLength(15)
  expect(new Set(turns).size).toBe(15)
})
