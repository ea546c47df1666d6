import { describe, expect, test } from 'vitest'
import { afterFailure, isExpired, isLive } from '../../../domain/webhooks/delivery-schedule.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const createdAt = Date.UTC(2026, 0, 1)
const isResent = false

describe('the schedule of a delivery', () => {
  test('the immediate ladder counts from the end of the attempt before', () => {
    const next = (attempts: number, endedAt: number) =>
      afterFailure({ createdAt, isResent, attempts, rung: 0 }, createdAt + endedAt, 1)
    expect([next(0, 10_000), next(1, 21_000), next(2, 36_000), next(3, 71_000)]).toEqual(
      [11_000, 26_000, 61_000, 196_000].map((at) => ({ status: 'retrying', rung: 0, at: createdAt + at })),
    )
    expect(next(4, 206_000)).toEqual({ status: 'failed', rung: 0, at: createdAt + 5 * MINUTE + 30_000 })
  })

  test('a rung that has passed is made up for at once, then comes the first one ahead', () => {
    const late = createdAt + 3 * HOUR
    const first = afterFailure({ createdAt, isResent, attempts: 4, rung: 0 }, late, 0)
    expect(first).toEqual({ status: 'failed', rung: 0, at: late })
    expect(afterFailure({ createdAt, isResent, attempts: 5, rung: 0 }, late + 10, 0)).toEqual({
      status: 'failed',
      rung: 4,
      at: createdAt + 4 * HOUR,
    })
  })

  test('behind the last rung it is dropped at 48 hours', () => {
    const last = afterFailure({ createdAt, isResent, attempts: 16, rung: 11 }, createdAt + 44 * HOUR, 0)
    expect(last).toEqual({ status: 'failed', rung: 12, at: createdAt + 48 * HOUR })
    expect(isExpired({ createdAt, isResent }, last.at! - 1)).toBe(false)
    expect(isExpired({ createdAt, isResent }, last.at!)).toBe(true)
  })

  test('only the immediate ladder counts', () => {
    expect([0, 4, 5, 16].map((attempts) => isLive({ attempts, isResent }))).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  test('what is sent again has the immediate ladder, at whatever age, and counts for nothing', () => {
    const late = createdAt + 30 * 24 * HOUR
    const next = (attempts: number) => afterFailure({ createdAt, isResent: true, attempts, rung: 0 }, late, 1)
    expect(next(3)).toEqual({ status: 'retrying', rung: 0, at: late + 125_000 })
    expect(next(4)).toEqual({ status: 'failed', rung: 0, at: null })
    expect(isExpired({ createdAt, isResent: true }, late)).toBe(false)
    expect([0, 4].map((attempts) => isLive({ attempts, isResent: true }))).toEqual([false, false])
  })

  test('redeliveries come late by 30 seconds at the most', () => {
    const at = (spread: number) =>
      afterFailure({ createdAt, isResent, attempts: 5, rung: 0 }, createdAt + 6 * MINUTE, spread).at
    expect(at(0)).toBe(createdAt + 15 * MINUTE)
    expect(at(0.999_999)).toBe(createdAt + 15 * MINUTE + 29_999)
  })
})
